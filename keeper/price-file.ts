/** The configuration of the price publisher: a JSON file that names the feeds, their sources, and the signers of reports. */
import { FEEDS, type Feed } from '../domain/prices/feed.ts'
import type { FeedId } from '../domain/prices/report-hash.ts'
import type { Address, Millis } from '../domain/units.ts'
import { JsonError, type JsonReader, readJsonObject } from '../service/json-reader.ts'

export interface PriceFile {
  /** The SignedPriceOracle. */
  readonly oracle: Address
  /** Signatures that a report needs, as the oracle has it; what the oracle has decides. */
  readonly threshold: number
  /** Bound of the wait for signers. */
  readonly deadlineMs: number
  readonly signers: readonly SignerTerms[]
  readonly feeds: readonly FeedTerms[]
}

export interface SignerTerms {
  readonly name: string
  /** Null: this process has the key, under the signer's name. */
  readonly remote: { readonly url: string; readonly address: Address } | null
}

export interface FeedTerms {
  readonly marketId: number
  readonly feed: Feed
  readonly feedId: FeedId
  readonly minimum: number
  readonly maxSpread: bigint
  readonly maxAhead: Millis
  readonly interval: Millis
  readonly deviation: bigint
  /** Whether reports are rounds of the first source, an aggregator, instead of signed prices. */
  readonly isRound: boolean
  /** Empty for a session feed, whose value is that of the market's calendar. */
  readonly sources: readonly SourceTerms[]
}

interface CommonTerms {
  readonly name: string
  readonly maxAge: Millis
  readonly maxDeviation: bigint
}

export interface HttpTerms extends CommonTerms {
  readonly kind: 'http'
  readonly url: string
  /** Path of the price in the document, such as `data.0.price`. */
  readonly price: string
  /** Path of the time of observation; null: the time at which the document arrived. */
  readonly time: string | null
  readonly isSeconds: boolean
  readonly pollMs: number
  readonly timeoutMs: number
}

export interface AggregatorTerms extends CommonTerms {
  readonly kind: 'aggregator'
  readonly address: Address
  readonly pollMs: number
}

export interface RecordingTerms extends CommonTerms {
  readonly kind: 'recording'
  readonly path: string
  readonly speed: number
  readonly startedAt: Millis
  /** A recorded price of `from` is published as `to`; null: prices are published as recorded. */
  readonly scale: { readonly from: bigint; readonly to: bigint } | null
}

export interface WalkTerms extends CommonTerms {
  readonly kind: 'walk'
  readonly first: bigint
  readonly home: bigint
  readonly grain: bigint
  readonly volatility: number
  readonly probability: boolean
}

/** Prices stated by operators with `npm run cb -- ops market final-price`. */
export interface OperatorTerms extends CommonTerms {
  readonly kind: 'operator'
  readonly pollMs: number
}

export type SourceTerms = HttpTerms | AggregatorTerms | RecordingTerms | WalkTerms | OperatorTerms

const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const FEED_ID = /^0x[0-9a-fA-F]{64}$/
const NAME = /^[\w.-]{1,40}$/
const KINDS = ['http', 'aggregator', 'recording', 'walk', 'operator'] as const

const addressIn = (json: JsonReader, name: string): Address =>
  json.matching(name, ADDRESS, 'an address, 0x and 40 hexadecimal digits').toLowerCase() as Address
const nameIn = (json: JsonReader): string =>
  json.matching('name', NAME, 'a name of at most 40 letters, digits, dots, dashes and underscores')
const millisIn = (json: JsonReader, name: string, fallback: number, least = 1): Millis =>
  json.count(name, { fallback, least }) as Millis

function urlIn(json: JsonReader): string {
  const url = json.text('url')
  const isHttp = URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol)
  return isHttp ? url : json.reject('url', 'an http or https URL')
}

/** Throws a JsonError that names the place of the first mistake. */
export function parsePriceFile(text: string): PriceFile {
  const json = readJsonObject(text)
  const signers = json.objects('signers').map(signerTerms)
  const threshold = json.count('threshold', { least: 1, most: signers.length })
  const feeds = json.objects('feeds').map(feedTerms)
  const file = {
    oracle: addressIn(json, 'oracle'),
    deadlineMs: json.count('deadline_ms', { fallback: 150, least: 10, most: 5_000 }),
    ...{ threshold, signers, feeds },
  }
  json.end()
  rejectRepeated(
    'signers',
    signers.map(({ name }) => name),
  )
  rejectRepeated(
    'feeds',
    feeds.map(({ marketId, feed }) => `${feed} of market ${marketId}`),
  )
  return file
}

function rejectRepeated(place: string, names: readonly string[]): void {
  const repeated = names.find((name, at) => names.indexOf(name) !== at)
  if (repeated !== undefined) throw new JsonError(`${place} has ${repeated} twice: expected it once`)
}

function signerTerms(json: JsonReader): SignerTerms {
  const name = nameIn(json)
  const remote = json.has('url') ? { url: urlIn(json), address: addressIn(json, 'address') } : null
  json.end()
  return { name, remote }
}

function feedTerms(json: JsonReader): FeedTerms {
  const feed = json.oneOf('feed', FEEDS, 'index')
  const sources = feed === 'session' ? [] : json.objects('sources').map(sourceTerms)
  const terms: FeedTerms = {
    ...{ feed, sources },
    marketId: json.count('market_id', { least: 1 }),
    feedId: json.matching('feed_id', FEED_ID, '0x and 64 hexadecimal digits').toLowerCase() as FeedId,
    minimum: json.count('minimum', {
      ...{ least: 1, most: Math.max(1, sources.length) },
      fallback: (sources.length >> 1) + 1,
    }),
    maxSpread: json.millionths('max_spread', 20_000n),
    maxAhead: millisIn(json, 'max_ahead_ms', 2_000, 0),
    interval: millisIn(json, 'interval_ms', 500, 100),
    deviation: json.millionths('deviation', 1_000n),
    isRound: json.oneOf('report', ['signatures', 'round'], 'signatures') === 'round',
  }
  json.end()
  rejectRepeated(
    `${json.path}.sources`,
    sources.map(({ name }) => name),
  )
  if (feed !== 'final' && sources.some(({ kind }) => kind === 'operator'))
    json.reject('feed', 'final, because operators state final prices only')
  if (terms.isRound && sources[0]?.kind !== 'aggregator')
    json.reject('report', 'signatures, because the first source is no aggregator')
  return terms
}

function sourceTerms(json: JsonReader): SourceTerms {
  const kind = json.oneOf('kind', KINDS)
  const common = {
    name: nameIn(json),
    maxAge: millisIn(json, 'max_age_ms', 5_000),
    maxDeviation: json.millionths('max_deviation', 10_000n),
  }
  const terms = { ...common, ...TERMS[kind](json) } as SourceTerms
  json.end()
  return terms
}

const TERMS: {
  readonly [Kind in SourceTerms['kind']]: (
    json: JsonReader,
  ) => Omit<Extract<SourceTerms, { kind: Kind }>, keyof CommonTerms>
} = {
  http: (json) => ({
    kind: 'http',
    url: urlIn(json),
    price: json.text('price'),
    time: json.has('time') ? json.text('time') : null,
    isSeconds: json.oneOf('time_unit', ['ms', 's'], 'ms') === 's',
    pollMs: json.count('poll_ms', { fallback: 500, least: 50 }),
    timeoutMs: json.count('timeout_ms', { fallback: 1_000, least: 50 }),
  }),
  aggregator: (json) => ({
    kind: 'aggregator',
    address: addressIn(json, 'address'),
    pollMs: json.count('poll_ms', { fallback: 1_000, least: 50 }),
  }),
  recording: (json) => ({
    kind: 'recording',
    path: json.text('path'),
    speed: Number(json.amount('speed', 10n ** 18n)) / 1e18,
    startedAt: json.count('started_at_ms') as Millis,
    scale: json.has('scale') ? scaleOf(json.object('scale')) : null,
  }),
  walk: (json) => ({
    kind: 'walk',
    first: json.amount('first'),
    home: json.amount('home'),
    grain: json.amount('grain'),
    volatility: Number(json.amount('volatility')) / 1e18,
    probability: json.flag('probability', false),
  }),
  operator: (json) => ({ kind: 'operator', pollMs: json.count('poll_ms', { fallback: 1_000, least: 50 }) }),
}

function scaleOf(json: JsonReader) {
  const scale = { from: json.amount('from'), to: json.amount('to') }
  if (scale.from <= 0n || scale.to <= 0n) json.reject('from', 'two positive prices')
  json.end()
  return scale
}
