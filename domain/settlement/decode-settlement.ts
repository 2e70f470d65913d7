/** Decodes the `settleBatch` argument; the inverse of `encodeSettleBatch`, whose file documents the bytes. */
import { toHex, writeHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import type { Order, OrderType, Side } from '../orders/order.ts'
import type { Address, MarketId, Millis, Price, Rate, Seconds, Steps, Ticks } from '../units.ts'
import type { SettlementPart } from './settlement.ts'
import { HEADER_BYTES } from './settlement-codec.ts'

const VERSION = 3
const MILLIONTH = 10n ** 12n
const SIGNATURE_BYTES = 64
const FIXED_BYTES = 46
const HAS_TAKER = 32
const ALL_TAKER = 16
const FORCED = 4
const HAS_QUANTITY = 2
const HAS_TRIGGER = 1

interface SentShare {
  readonly fill: Steps
  /** Steps of `fill` at the taker rate. */
  readonly taker: Steps
}

/**
 * A fill of a signed order. `type` matches the signed trigger condition; the bytes do not distinguish types
 * with equal fields.
 */
export interface SentFill extends SentShare {
  readonly order: Order
}

/** A fill of a forced order. */
export interface SentForcedFill extends SentShare {
  readonly account: Address
  readonly number: bigint
  readonly side: Side
}

export interface SentPart extends Omit<SettlementPart, 'fills'> {
  readonly fills: readonly (SentFill | SentForcedFill)[]
}

class Reader {
  readonly #bytes: Uint8Array
  at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  take(length: number): Uint8Array {
    invariant(this.at + length <= this.#bytes.length, 'the calldata ends with its proof')
    this.at += length
    return this.#bytes.subarray(this.at - length, this.at)
  }

  uint(length: number): bigint {
    return BigInt(toHex(this.take(length)))
  }

  count(length: number): number {
    return Number(this.uint(length))
  }

  get isAtEnd(): boolean {
    return this.at === this.#bytes.length
  }
}

/** Throws an InvariantError if the text is not an encoded argument. */
export function decodeSettleBatch(text: string, marketId: MarketId): SentPart {
  const bytes = new Uint8Array((text.length - 2) / 2)
  invariant(writeHex(text, bytes, 0), 'calldata is hex')
  const reader = new Reader(bytes)
  const ids = { actionId: reader.count(6), batchId: reader.count(6), asOf: reader.count(6) as Millis }
  const place = { part: reader.count(1), parts: reader.count(1) }
  const [orders, proof] = [reader.count(2), reader.count(2)]
  const rate = (): Rate => (reader.uint(3) * MILLIONTH) as Rate
  const rates = { makerFee: rate(), takerFee: rate() }
  invariant(reader.count(2) === VERSION, 'the calldata has this codec version')
  const price = reader.count(5) as Ticks
  const report = { price: reader.uint(12) as Price, observedAt: reader.count(6) as Millis }
  reader.take(HEADER_BYTES - reader.at)
  const fills = Array.from({ length: orders }, () => readFill(reader, marketId))
  const oracle = { ...report, signatures: toHex(reader.take(proof)) }
  invariant(reader.isAtEnd, 'the calldata ends with its proof')
  return { marketId, ...ids, ...place, price, ...rates, oracle, fills }
}

function readFill(reader: Reader, marketId: MarketId): SentFill | SentForcedFill {
  const fixed = new Reader(reader.take(FIXED_BYTES))
  const account = toHex(fixed.take(20)) as Address
  const fill = fixed.count(6) as Steps
  const word = fixed.uint(8)
  const flags = { side: word & 1n ? 'LONG' : 'SHORT', reduceOnly: (word & 2n) !== 0n } as const
  const salt = BigInt.asUintN(57, word) >> 4n
  const [price, expiration, meta] = [fixed.count(5) as Ticks, fixed.count(5) as Seconds, fixed.count(2)]
  const isForced = (meta & FORCED) !== 0
  if (!isForced) reader.take(SIGNATURE_BYTES)
  const quantity = meta & HAS_QUANTITY ? (reader.count(6) as Steps) : fill
  const [condition, trigger] = meta & HAS_TRIGGER ? [reader.count(1), reader.count(5)] : [0, 0]
  const whole = (meta & ALL_TAKER ? fill : 0) as Steps
  const taker = meta & HAS_TAKER ? (reader.count(6) as Steps) : whole
  if (isForced) return { account, number: salt, side: flags.side, fill, taker }
  const order: Order = {
    ...{ marketId, maker: account, ...flags, type: typeOf(condition, flags.side, price), price, quantity },
    ...{ trigger: trigger as Ticks, leverage: Number(word >> 57n), expiration, salt },
  }
  return { order, fill, taker }
}

/**
 * A stop buy triggers at or above its trigger (condition 1), a stop sell at or below it (2); a take-profit is the opposite.
 */
function typeOf(condition: number, side: Side, price: Ticks): OrderType {
  const kind = price === 0 ? 'MARKET' : 'LIMIT'
  if (condition === 0) return kind
  return (condition === 1) === (side === 'LONG') ? `STOP_${kind}` : `TAKE_PROFIT_${kind}`
}
