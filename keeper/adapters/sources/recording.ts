/** Recorded prices, replayed at their own pace or faster. A reading is known only when it was known to the recorder. */
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Reading } from '../../../domain/prices/aggregate.ts'
import type { Millis } from '../../../domain/units.ts'
import { parsePrice } from '../../../service/decimal.ts'
import type { PriceSource } from '../../ports.ts'
import type { RecordingTerms } from '../../price-file.ts'

/** Times of the file, in milliseconds. */
export interface RecordedPrice {
  readonly price: bigint
  readonly observedAt: number
  /** When the price was known: the end of a bar, or the arrival of a report. */
  readonly knownAt: number
}

export interface Recording {
  readonly length: number
  /** Length of a bar; 0 if the rows are single prices. */
  readonly barMs: number
  readonly first: RecordedPrice
  readonly last: RecordedPrice
  /** Rows are parsed when they are needed, because a long file would hold up the process. */
  at(index: number): RecordedPrice
}

export function createRecordingSource(terms: RecordingTerms): PriceSource {
  const { name, maxAge, maxDeviation, startedAt, speed, scale } = terms
  let recording: Recording | null = null
  let fault = 'NOT_READ'
  let index = 0
  readRecording(terms.path).then(
    (read) => {
      recording = read
    },
    (error: Error) => {
      fault = error instanceof RangeError ? 'NOT_A_RECORDING' : 'UNREADABLE'
    },
  )
  const toReading = ({ price, observedAt }: RecordedPrice, origin: number): Reading => ({
    price: scale === null ? price : (price * scale.to) / scale.from,
    observedAt: Math.floor(startedAt + (observedAt - origin) / speed) as Millis,
  })
  return {
    ...{ name, maxAge, maxDeviation },
    answer(now) {
      if (recording === null) return { reading: null, fault }
      const { first, length } = recording
      const time = first.knownAt + (now - startedAt) * speed
      try {
        while (index + 1 < length && recording.at(index + 1).knownAt <= time) index++
        return { reading: toReading(recording.at(index), first.knownAt), fault: null }
      } catch {
        // The row after this one is not readable.
        index++
        return { reading: null, fault: 'BAD_ROW' }
      }
    },
    stop() {},
  }
}

const unzip = promisify(gunzip)

/** Reads a CSV file, compressed by gzip or not. Throws a RangeError if its columns are not those of recorded prices. */
export async function readRecording(path: string): Promise<Recording> {
  const content = await readFile(path)
  const isZipped = content[0] === 0x1f && content[1] === 0x8b
  const text = (isZipped ? await unzip(content) : content).toString('utf8')
  const lines = text.split('\n').filter((line) => line !== '')
  const columns = (lines.shift() ?? '').trim().split(',')
  const [time, price, arrival] = ['time_ms', 'price', 'recv_ms'].map((name) => columns.indexOf(name)) as [
    number,
    number,
    number,
  ]
  if (time < 0 || price < 0 || lines.length === 0)
    throw new RangeError(
      `${path} has the columns ${columns.join(',')} and ${lines.length} rows: expected time_ms, price and at least one row`,
    )
  // A bar has its opening price, and is stamped with its start.
  const barMs = columns.includes('open') ? barLength(lines, time) : 0
  const at = (index: number): RecordedPrice => {
    const cells = (lines[index] as string).trim().split(',')
    const stamped = Number(cells[time])
    const observedAt = stamped + barMs
    const knownAt = arrival < 0 ? observedAt : Math.max(observedAt, Number(cells[arrival]))
    const parsed = parsePrice(cells[price] ?? '')
    if (parsed === null || !Number.isFinite(knownAt))
      throw new RangeError(
        `${path} has the row "${lines[index]}": expected a time in milliseconds and a decimal price`,
      )
    return { price: parsed, observedAt, knownAt }
  }
  return { length: lines.length, barMs, first: at(0), last: at(lines.length - 1), at }
}

/** Rows that are enough to find two adjacent bars. */
const SAMPLE = 500

/** The smallest distance of two rows: minutes without a trade have no bar. */
function barLength(lines: readonly string[], time: number): number {
  const times = lines.slice(0, SAMPLE).map((line) => Number(line.split(',')[time]))
  const gaps = times.slice(1).map((at, index) => at - (times[index] as number))
  return Math.min(...gaps.filter((gap) => gap > 0), 60_000)
}
