/** The topics of the live feed, by the names under which clients subscribe to them. */
import { INTERVALS, type Interval } from '../../domain/market-data/interval.ts'
import { ApiError } from '../errors.ts'

export const MARKET_CHANNELS = ['book', 'trades', 'auction', 'stats'] as const
export type MarketChannel = (typeof MARKET_CHANNELS)[number]

export type Topic =
  | { readonly kind: MarketChannel; readonly marketId: number }
  | { readonly kind: 'candles'; readonly marketId: number; readonly interval: Interval }
  | { readonly kind: 'markets' | 'system' }
  /** Everything about the caller's account. */
  | { readonly kind: 'user' }

export type TopicKind = Topic['kind']

/** The names of all topics, for messages and descriptions. */
export const TOPIC_NAMES =
  'market.<market_id>.book, market.<market_id>.trades, market.<market_id>.auction, market.<market_id>.stats, ' +
  'market.<market_id>.candles.<interval>, markets, user, system'

const INTERVAL_NAMES = Object.keys(INTERVALS) as Interval[]
const MARKET_TOPIC = /^market\.([1-9]\d{0,9})\.([a-z]+)(?:\.([0-9a-z]+))?$/

/** Throws TOPIC_NOT_FOUND. Whether the market exists is checked by the subscription. */
export function parseTopic(name: string): Topic {
  const topic = topicOf(name)
  if (topic === null)
    throw new ApiError('TOPIC_NOT_FOUND', { field: 'topics', expected: TOPIC_NAMES, received: name })
  return topic
}

function topicOf(name: string): Topic | null {
  if (name === 'markets' || name === 'system' || name === 'user') return { kind: name }
  const [, id, channel, rest] = MARKET_TOPIC.exec(name) ?? []
  if (id === undefined) return null
  const marketId = Number(id)
  const interval = INTERVAL_NAMES.find((each) => each === rest)
  if (channel === 'candles') return interval === undefined ? null : { kind: 'candles', marketId, interval }
  const kind = MARKET_CHANNELS.find((each) => each === channel)
  return kind === undefined || rest !== undefined ? null : { kind, marketId }
}

export function topicName(topic: Topic): string {
  switch (topic.kind) {
    case 'markets':
    case 'system':
    case 'user':
      return topic.kind
    case 'candles':
      return `market.${topic.marketId}.candles.${topic.interval}`
    default:
      return `market.${topic.marketId}.${topic.kind}`
  }
}

/** A place in the feed. Positions of another epoch name other rows: the read model has been rebuilt since. */
export interface Position {
  readonly epoch: number
  readonly seq: number
}

/** Throws INVALID_FIELD. */
export function parsePosition(text: string): Position {
  const [, epoch, seq] = /^(\d{1,15}):(\d{1,15})$/.exec(text) ?? []
  if (seq === undefined) {
    const expected = '`<epoch>:<seq>`, the position of a message'
    throw new ApiError('INVALID_FIELD', { field: 'since', expected, received: text })
  }
  return { epoch: Number(epoch), seq: Number(seq) }
}

export const positionText = ({ epoch, seq }: Position): string => `${epoch}:${seq}`
