/** Prices in JSON documents over HTTP. Sources with the same URL share one poll. */
import { observationTime, type Reading } from '../../../domain/prices/aggregate.ts'
import type { Millis } from '../../../domain/units.ts'
import { boundedText } from '../../../service/bounded-text.ts'
import type { Clock } from '../../../service/clock.ts'
import { parsePrice } from '../../../service/decimal.ts'
import type { PriceSource } from '../../ports.ts'
import type { HttpTerms } from '../../price-file.ts'

/** Result of the last poll. */
interface Document {
  readonly content: unknown
  readonly arrivedAt: Millis
  readonly fault: string | null
}

interface Poll {
  document: Document
  users: number
  stop(): void
}

/**
 * Bounds of a document. Each value costs 1 to 2 µs in the process that also runs the auctions, so a hostile source
 * could stop the exchange: 2 MB of zeros take 2.6 s.
 */
const MOST_BYTES = 500_000
const MOST_VALUES = 20_000

export function createHttpSources(clock: Clock) {
  const polls = new Map<string, Poll>()

  function pollOf(terms: HttpTerms): Poll {
    const key = `${terms.pollMs} ${terms.timeoutMs} ${terms.url}`
    const poll = polls.get(key) ?? startPoll(terms, clock)
    poll.users++
    polls.set(key, poll)
    return poll
  }

  return (terms: HttpTerms): PriceSource => {
    const poll = pollOf(terms)
    const { name, maxAge, maxDeviation } = terms
    let known: Document | null = null
    let answer: ReturnType<typeof read> = { reading: null, fault: 'NOT_POLLED' }
    return {
      ...{ name, maxAge, maxDeviation },
      answer() {
        // Each document is read once, however often the publisher asks.
        if (poll.document !== known) answer = read(terms, poll.document)
        known = poll.document
        return answer
      },
      stop() {
        if (--poll.users > 0) return
        poll.stop()
        for (const [key, one] of polls) if (one === poll) polls.delete(key)
      },
    }
  }
}

function startPoll({ url, pollMs, timeoutMs }: HttpTerms, clock: Clock): Poll {
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const poll: Poll = {
    document: { content: null, arrivedAt: 0 as Millis, fault: 'NOT_POLLED' },
    users: 0,
    stop() {
      stopping.abort()
      clearTimeout(timer)
    },
  }
  async function run(): Promise<void> {
    const began = performance.now()
    const { content, fault } = await load(
      url,
      AbortSignal.any([stopping.signal, AbortSignal.timeout(timeoutMs)]),
    )
    if (stopping.signal.aborted) return
    poll.document = { content, fault, arrivedAt: clock.now() }
    timer = setTimeout(run, Math.max(0, pollMs - (performance.now() - began)))
  }
  void run()
  return poll
}

interface Loaded {
  readonly content: unknown
  readonly fault: string | null
}

const failed = (fault: string): Loaded => ({ content: null, fault })

async function load(url: string, signal: AbortSignal): Promise<Loaded> {
  try {
    const response = await fetch(url, { signal, headers: { accept: 'application/json' } })
    if (response.status !== 200) {
      await response.body?.cancel()
      return failed(`HTTP_${response.status}`)
    }
    const text = await boundedText(response.body, MOST_BYTES)
    if (text === null || mostValuesOf(text) > MOST_VALUES) return failed('TOO_LARGE')
    return { content: parse(text), fault: null }
  } catch (error) {
    if (error instanceof SyntaxError) return failed('NOT_JSON')
    // Nested more deeply than the parser's stack.
    if (error instanceof RangeError) return failed('TOO_LARGE')
    return failed((error as Error).name === 'TimeoutError' ? 'TIMED_OUT' : 'UNREACHABLE')
  }
}

/** Not below the number of values: each starts the document or follows a comma, a colon or a bracket. */
function mostValuesOf(text: string): number {
  let count = 1
  for (let at = 0; at < text.length; at++) if (',[{'.includes(text[at] as string)) count++
  return count
}

/** Numbers stay the text that the source wrote: a double would lose digits. */
const parse = (text: string): unknown =>
  JSON.parse(text, ((_key: string, value: unknown, context: { readonly source: string }) =>
    typeof value === 'number' ? context.source : value) as (key: string, value: unknown) => unknown)

function read(
  { price, time, isSeconds }: HttpTerms,
  { content, arrivedAt, fault }: Document,
): { readonly reading: Reading | null; readonly fault: string | null } {
  if (fault !== null) return { reading: null, fault }
  const found = textAt(content, price)
  const parsed = found === null ? null : parsePrice(found)
  if (parsed === null) return { reading: null, fault: 'NO_PRICE' }
  if (time === null) return { reading: { price: parsed, observedAt: arrivedAt }, fault: null }
  const observedAt = observationTime(Number(textAt(content, time) ?? Number.NaN) * (isSeconds ? 1_000 : 1))
  if (observedAt === null) return { reading: null, fault: 'NO_TIME' }
  return { reading: { price: parsed, observedAt }, fault: null }
}

/** The text at a path such as `data.0.price`; null if there is none. */
function textAt(content: unknown, path: string): string | null {
  let node = content
  for (const name of path.split('.')) {
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, name)) return null
    node = (node as Readonly<Record<string, unknown>>)[name]
  }
  return typeof node === 'string' ? node : null
}
