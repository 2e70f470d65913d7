/** The feeds that a signer signs, with its own bounds: a JSON file that its operator writes, apart from the publisher's. */
import type { FeedId } from '../domain/prices/report-hash.ts'
import type { SigningRules } from '../domain/prices/signing.ts'
import { type Millis, ONE } from '../domain/units.ts'
import { JsonError, type JsonReader, readJsonObject } from '../service/json-reader.ts'

export type SignableFeeds = ReadonlyMap<FeedId, SigningRules>

const FEED_ID = /^0x[0-9a-fA-F]{64}$/
const KINDS = ['price', 'probability', 'session', 'final'] as const

type Kind = (typeof KINDS)[number]

/** A report of a session feed is a time of 48 bits, and 0 outside a session. */
const SESSION_RANGE = { low: 0n, high: 2n ** 48n - 1n }
const HIGHEST_PRICE = 10n ** 12n * ONE

/** Throws a JsonError that names the place of the first mistake. */
export function parseFeedsFile(text: string): SignableFeeds {
  const json = readJsonObject(text)
  const feeds = new Map<FeedId, SigningRules>()
  for (const item of json.objects('feeds')) {
    const id = item.matching('feed_id', FEED_ID, '0x and 64 hexadecimal digits').toLowerCase() as FeedId
    if (feeds.has(id)) throw new JsonError(`${item.path}.feed_id is ${id} again: expected it once`)
    feeds.set(id, rulesIn(item))
  }
  json.end()
  return feeds
}

function rulesIn(json: JsonReader): SigningRules {
  const times = {
    maxAge: json.count('max_age_ms', { fallback: 5_000, least: 1 }) as Millis,
    maxAhead: json.count('max_ahead_ms', { fallback: 2_000 }) as Millis,
  }
  const kind = json.oneOf('kind', KINDS, 'price')
  const rules: SigningRules =
    kind === 'session'
      ? { ...times, range: SESSION_RANGE, move: null }
      : { ...times, range: rangeIn(json, kind), move: kind === 'final' ? null : moveIn(json, kind) }
  json.end()
  return rules
}

function rangeIn(json: JsonReader, kind: Kind) {
  const highest = kind === 'probability' ? ONE : HIGHEST_PRICE
  const range = { low: json.amount('low', 1n), high: json.amount('high', highest) }
  if (kind === 'probability' && range.high > ONE)
    return json.reject('high', 'at most 1, because it is a probability')
  return range.low < 0n || range.high < range.low
    ? json.reject('high', 'at least low, which is not negative')
    : range
}

/** By default the limits that markets have by default (docs/deploy/README.md). */
const moveIn = (json: JsonReader, kind: Kind): NonNullable<SigningRules['move']> => ({
  kind: kind === 'probability' ? 'binary_future' : 'future',
  moveBase: json.millionths('move_base', 100_000n),
  moveSlope: json.millionths('move_slope', 20_000n),
  moveWindow: json.count('move_window_ms', { fallback: 1_000, least: 1 }) as Millis,
})
