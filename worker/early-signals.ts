// Imported before everything else: see `endOnStopSignals`.
import { endOnStopSignals, endWithNpx } from '../shared/stop-signals.ts';

endOnStopSignals();
endWithNpx();
