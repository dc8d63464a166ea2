// The queue of recorded spans in front of the exporter. The library's own queue drops finished spans; this one reports
// that it is full before a span is made, so that an unavailable receiver costs nothing.
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace';
import { errorText } from '../../shared/errors.ts';

export interface BatchOptions {
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
  readonly scheduledDelayMillis: number;
  readonly exportTimeoutMillis: number;
}

export interface ExportEvents {
  /** Called when a batch was accepted. */
  onArrival(): void;
  /** Called when a batch was not accepted; `reason` is one clause without a final full stop. */
  onFailure(reason: string): void;
  /** Called when a span did not fit into the queue. */
  onDrop(): void;
}

export interface BoundedExport {
  readonly processor: BatchSpanProcessor;
  /** False if a span that ends now would be dropped. */
  hasRoom(): boolean;
}

/** The code of an ExportResult for a delivered batch. */
const successCode = 0;

export function createBoundedExport(
  exporter: SpanExporter,
  options: BatchOptions,
  { onArrival, onFailure, onDrop }: ExportEvents,
): BoundedExport {
  let waiting = 0;
  const observed: SpanExporter = {
    export(spans, done) {
      waiting -= spans.length;
      exporter.export(spans, (result) => {
        if (result.code === successCode) onArrival();
        else onFailure(toReason(result.error));
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  };
  const hasRoom = () => waiting < options.maxQueueSize;

  class BoundedProcessor extends BatchSpanProcessor {
    override onEnd(span: ReadableSpan): void {
      if (!hasRoom()) {
        onDrop();
        return;
      }
      waiting++;
      super.onEnd(span);
    }
  }
  return { processor: new BoundedProcessor({ exporter: observed, ...options }), hasRoom };
}

function toReason(error: Error | undefined): string {
  const text = error === undefined ? '' : errorText(error).trim();
  return text === '' ? 'it refused them' : text.replace(/\.$/, '');
}
