/** Reads the metrics of the exchange's processes over their internal listeners. */
import { parseSamples, type Samples } from './samples.ts'

/** The process by the metric that it alone exports. */
const KINDS = {
  engine: 'engine_is_owner',
  keeper: 'keeper_chain_block',
  indexer: 'indexer_head_block',
  api: 'api_live_connections',
  signer: 'signer_reports_total',
  backstop: 'backstop_failed_turns_total',
} as const

export type ProcessKind = keyof typeof KINDS

/** Why a process has no metrics here. Texts of errors are not shown: they can name other hosts. */
export type ReadingFault = 'unreachable' | 'timed_out' | 'refused' | 'too_large'

export interface ProcessReading {
  /** Host and port of the internal listener. */
  readonly target: string
  /** Null if it exports no known metric. */
  readonly kind: ProcessKind | null
  readonly fault: ReadingFault | null
  readonly samples: Samples
}

const TIMEOUT_MS = 2_000
const MOST_BYTES = 2 * 1024 * 1024
const NO_SAMPLES = parseSamples('')

/** Null beyond `MOST_BYTES`. */
async function boundedText(response: Response): Promise<string | null> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.length
    if (bytes > MOST_BYTES) return null
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

async function readTarget(url: string): Promise<ProcessReading> {
  const target = new URL(url).host
  const failed = (fault: ReadingFault): ProcessReading => ({ target, kind: null, fault, samples: NO_SAMPLES })
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const response = await fetch(`${url}/metrics`, { signal, redirect: 'error' })
    if (!response.ok) {
      await response.body?.cancel()
      return failed('refused')
    }
    const text = await boundedText(response)
    if (text === null) return failed('too_large')
    const samples = parseSamples(text)
    const found = Object.entries(KINDS).find(([, metric]) => samples.has(metric))
    return { target, kind: (found?.[0] ?? null) as ProcessKind | null, fault: null, samples }
  } catch (error) {
    return failed((error as Error).name === 'TimeoutError' ? 'timed_out' : 'unreachable')
  }
}

export const readProcesses = (targets: readonly string[]): Promise<readonly ProcessReading[]> =>
  Promise.all(targets.map(readTarget))
