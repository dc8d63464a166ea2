// Imported before everything else: see `endOnStopSignals`.
import { endOnStopSignals } from '../shared/stop-signals.ts';

endOnStopSignals();
