/** Variables of the export of spans, which api, engine, keeper and indexer read alike. */
import { type Env, environment } from './environment.ts'
import type { Logger } from './logger.ts'
import type { Spans, TraceExport } from './spans.ts'

/** Null without `TRACE_EXPORT_URL`: then the process makes no spans. */
export function traceExportOf(env: Env, process: string): TraceExport | null {
  const { optional, http, count } = environment(env, process)
  const sampleMillionths = count('TRACE_SAMPLE_MILLIONTHS', 10_000, 1, 1_000_000)
  return optional('TRACE_EXPORT_URL') === null ? null : { url: http('TRACE_EXPORT_URL'), sampleMillionths }
}

/** Null if spans are off: then nothing of the SDK is loaded. `name`: of the process. */
export async function startSpans(
  name: string,
  settings: TraceExport | null,
  logger: Pick<Logger, 'info' | 'warn'>,
): Promise<Spans | null> {
  if (settings === null) return null
  const { createSpans } = await import('./span-export.ts')
  return createSpans(name, settings, logger)
}
