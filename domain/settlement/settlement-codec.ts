/**
 * Encodes the argument of `settleBatch` and decodes the data of `BatchSettled`. All fields are big-endian.
 * Twin of contracts/libraries/SettlementCodec.sol and OrderLib.sol.
 *
 * Calldata: header, one record per order, the oracle's signatures.
 *
 *   header   0  actionId 6 · 6 batchId 6 · 12 asOf 6 · 18 part 1 · 19 parts 1 · 20 orders 2 · 22 proof length 2
 *           24  makerFee 3 · 27 takerFee 3 (millionths) · 30 version 2
 *           32  price 5 (ticks) · 37 oracle price 12 (x 1e18) · 49 observedAt 6 · 55 zero 9                          = 64
 *   record   0  maker 20 · 20 fill 6 (steps) · 26 leverage 7 bits, flags 57 bits
 *           34  price 5 (ticks) · 39 expiration 5 (s)
 *           44  slot 10 bits · has taker 1 · all taker 1 · v 1 · forced 1 · has quantity 1 · has trigger 1           = 46
 *           r 32 · s 32, unless it is forced
 *           quantity 6 if it is not the fill · trigger condition 1, trigger 5 (ticks) if it has one
 *           taker 6 if it is neither 0 nor the fill
 *
 * Event data: the header again, the funding index, one record per order.
 *
 *   header   0  as above 64 · 64 funding index int128                                                               = 80
 *   record   0  maker 20 · 20 leverage 7 bits, flags 57 bits
 *           28  slot 10 bits · dead 1 · fee capped 1 · taker mode 2 · forced 1 · zero 1
 *           30  fill 6 · 36 free delta int96                                                                        = 48
 *           taker 6 if the mode is 2 (mode 0: none of the fill, 1: all of it) · fee 12 if it was capped
 */

import { toHex, writeHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import { fillFee } from '../market/fees.ts'
import type { MarketSpec } from '../market/market.ts'
import { triggerCondition } from '../orders/order.ts'
import { packFlags } from '../orders/order-hash.ts'
import type { Address, FundingIndex, Millis, Price, Quote, Rate, Steps, Ticks } from '../units.ts'
import type { BatchSettled, ForcedFill, SettledFill, SettlementFill, SettlementPart } from './settlement.ts'

export const HEADER_BYTES = 64
/** Length of a record without signature and optional fields. */
const RECORD_FIXED_BYTES = 46
const RECORD_MOST_BYTES = RECORD_FIXED_BYTES + 64 + 3 * 6
/** Bounds of record fields. Admission rejects orders beyond them. */
export const QUANTITY_END = 2 ** 48
export const PRICE_END = 2 ** 40
export const EXPIRATION_END = 2 ** 40
export const LEVERAGE_MAX = 127

const VERSION = 3n
const NO_SLOT = 1023
/** Bits of a record's last two fixed bytes, besides slot and v. */
const HAS_TAKER = 32n
const ALL_TAKER = 16n
const FORCED = 4n
const HAS_QUANTITY = 2n
const HAS_TRIGGER = 1n
const MILLIONTH = 10n ** 12n
const LOG_HEADER_BYTES = HEADER_BYTES + 16
const LOG_RECORD_BYTES = 48
const TAKER_NONE = 0
const TAKER_ALL = 1
const TAKER_MIXED = 2

/** keccak of `BatchSettled(uint256,uint256,bytes)`. */
export const BATCH_SETTLED_TOPIC = '0xc7cf846dc3972beaae7179f0b18b759b209565af416d4df5ec7b7ecce9a5ff1d'

// ---------------------------------------------------------------------- bytes

function writeUint(bytes: Uint8Array, at: number, length: number, value: bigint): void {
  invariant(value >= 0n && value < 1n << BigInt(8 * length), `${value} fits into a field of ${length} bytes`)
  let rest = value
  for (let index = at + length - 1; index >= at; index--) {
    bytes[index] = Number(rest & 0xffn)
    rest >>= 8n
  }
}

function readUint(bytes: Uint8Array, at: number, length: number): bigint {
  invariant(at + length <= bytes.length, 'the event data ends with its last record')
  let value = 0n
  for (let index = at; index < at + length; index++) value = (value << 8n) | BigInt(bytes[index] as number)
  return value
}

const readCount = (bytes: Uint8Array, at: number, length: number): number =>
  Number(readUint(bytes, at, length))
const readInt = (bytes: Uint8Array, at: number, length: number): bigint =>
  BigInt.asIntN(8 * length, readUint(bytes, at, length))

function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array((text.length - 2) / 2)
  invariant(writeHex(text, bytes, 0), 'bytes from the chain are hex')
  return bytes
}

// ---------------------------------------------------------------------- calldata

/** A rate in millionths, as the header stores it. The listing rules allow no finer rate. */
function millionths(rate: Rate): bigint {
  invariant(rate % MILLIONTH === 0n, 'a rate is a multiple of 1e-6')
  return rate / MILLIONTH
}

function writeHeader(bytes: Uint8Array, part: SettlementPart, proofLength: number): void {
  writeUint(bytes, 0, 6, BigInt(part.actionId))
  writeUint(bytes, 6, 6, BigInt(part.batchId))
  writeUint(bytes, 12, 6, BigInt(part.asOf))
  writeUint(bytes, 18, 1, BigInt(part.part))
  writeUint(bytes, 19, 1, BigInt(part.parts))
  writeUint(bytes, 20, 2, BigInt(part.fills.length))
  writeUint(bytes, 22, 2, BigInt(proofLength))
  writeUint(bytes, 24, 3, millionths(part.makerFee))
  writeUint(bytes, 27, 3, millionths(part.takerFee))
  writeUint(bytes, 30, 2, VERSION)
  writeUint(bytes, 32, 5, BigInt(part.price))
  writeUint(bytes, 37, 12, part.oracle.price)
  writeUint(bytes, 49, 6, BigInt(part.oracle.observedAt))
}

/** Writes the field if `isPresent`; returns the offset after it. */
function writeOptional(
  bytes: Uint8Array,
  at: number,
  length: number,
  isPresent: boolean,
  value: bigint,
): number {
  if (isPresent) writeUint(bytes, at, length, value)
  return isPresent ? at + length : at
}

/** The taker field is needed only if the taker steps are neither zero nor the whole fill. */
const hasTaker = ({ fill, taker }: { fill: Steps; taker: Steps }): boolean => taker !== 0 && taker !== fill

function takerBits(steps: { fill: Steps; taker: Steps }): bigint {
  if (hasTaker(steps)) return HAS_TAKER
  return steps.taker === 0 ? 0n : ALL_TAKER
}

interface FixedFields {
  readonly account: Address
  readonly fill: Steps
  readonly leverage: number
  readonly flags: bigint
  readonly price: number
  readonly expiration: number
  readonly meta: bigint
}

/** Writes the fields that every record has; returns the offset after them. */
function writeFixed(bytes: Uint8Array, at: number, fields: FixedFields): number {
  invariant(writeHex(fields.account, bytes, at), 'an account is an address')
  writeUint(bytes, at + 20, 6, BigInt(fields.fill))
  writeUint(bytes, at + 26, 8, (BigInt(fields.leverage) << 57n) | fields.flags)
  writeUint(bytes, at + 34, 5, BigInt(fields.price))
  writeUint(bytes, at + 39, 5, BigInt(fields.expiration))
  writeUint(bytes, at + 44, 2, fields.meta)
  return at + RECORD_FIXED_BYTES
}

/** Writes an order's record; returns the offset after it. */
function writeRecord(bytes: Uint8Array, at: number, settled: SettlementFill): number {
  const { order, fill, taker, partialSlot } = settled
  const signature = fromHex(order.signature)
  invariant(signature.length === 66 && signature[65] === 1, 'an order is signed as a personal message')
  invariant(order.leverage <= LEVERAGE_MAX, 'leverage fits into 7 bits')
  const condition = BigInt(triggerCondition(order.type, order.side))
  const hasQuantity = order.quantity !== fill
  const hasTrigger = condition !== 0n || order.trigger !== 0
  const meta =
    (BigInt(partialSlot ?? NO_SLOT) << 6n) |
    takerBits(settled) |
    (BigInt((signature[64] as number) - 27) << 3n) |
    (hasQuantity ? HAS_QUANTITY : 0n) |
    (hasTrigger ? HAS_TRIGGER : 0n)

  const { maker: account, leverage, price, expiration } = order
  let next = writeFixed(bytes, at, {
    account,
    fill,
    leverage,
    flags: packFlags(order),
    price,
    expiration,
    meta,
  })
  bytes.set(signature.subarray(0, 64), next)
  next = writeOptional(bytes, next + 64, 6, hasQuantity, BigInt(order.quantity))
  next = writeOptional(bytes, next, 6, hasTrigger, (condition << 40n) | BigInt(order.trigger))
  return writeOptional(bytes, next, 6, hasTaker(settled), BigInt(taker))
}

/**
 * Writes the record of a liquidation: no limit, expiration, leverage, slot or signature. Returns the offset
 * after it.
 */
function writeForced(bytes: Uint8Array, at: number, forced: ForcedFill): number {
  const { account, number, side, fill, taker } = forced
  const flags = packFlags({ salt: number, reduceOnly: true, side })
  const meta = (BigInt(NO_SLOT) << 6n) | takerBits(forced) | FORCED
  const next = writeFixed(bytes, at, { account, fill, leverage: 0, flags, price: 0, expiration: 0, meta })
  return writeOptional(bytes, next, 6, hasTaker(forced), BigInt(taker))
}

/** Encodes the `settleBatch` argument. */
export function encodeSettleBatch(part: SettlementPart, spec: MarketSpec): Uint8Array {
  invariant(part.marketId === spec.marketId, 'the part belongs to the market of the spec')
  const proof = fromHex(part.oracle.signatures)
  const bytes = new Uint8Array(HEADER_BYTES + part.fills.length * RECORD_MOST_BYTES + proof.length)
  writeHeader(bytes, part, proof.length)
  let next = HEADER_BYTES
  for (const fill of part.fills)
    next = 'order' in fill ? writeRecord(bytes, next, fill) : writeForced(bytes, next, fill)
  bytes.set(proof, next)
  return bytes.slice(0, next + proof.length)
}

// ---------------------------------------------------------------------- event

function readLogHeader(bytes: Uint8Array): Omit<BatchSettled, 'fills'> {
  invariant(readUint(bytes, 30, 2) === VERSION, 'the event data has this codec version')
  return {
    actionId: readCount(bytes, 0, 6),
    batchId: readCount(bytes, 6, 6),
    asOf: readCount(bytes, 12, 6) as Millis,
    part: readCount(bytes, 18, 1),
    parts: readCount(bytes, 19, 1),
    makerFee: (readUint(bytes, 24, 3) * MILLIONTH) as Rate,
    takerFee: (readUint(bytes, 27, 3) * MILLIONTH) as Rate,
    price: readCount(bytes, 32, 5) as Ticks,
    oraclePrice: readUint(bytes, 37, 12) as Price,
    observedAt: readCount(bytes, 49, 6) as Millis,
    fundingIndex: readInt(bytes, HEADER_BYTES, 16) as FundingIndex,
  }
}

/** Taker steps of a fill: none, all, or stored in a separate field. */
function readTaker(bytes: Uint8Array, at: number, mode: number, fill: Steps): Steps {
  if (mode === TAKER_NONE) return 0 as Steps
  return mode === TAKER_ALL ? fill : (readCount(bytes, at, 6) as Steps)
}

function readRecord(
  bytes: Uint8Array,
  at: number,
  header: Omit<BatchSettled, 'fills'>,
  spec: MarketSpec,
): { fill: SettledFill; end: number } {
  const word = readUint(bytes, at + 20, 8)
  const flags = word & ((1n << 57n) - 1n)
  const meta = readCount(bytes, at + 28, 2)
  const mode = (meta >> 2) & 3
  const slot = meta >> 6
  const isFeeCapped = (meta & 16) !== 0
  const fill = readCount(bytes, at + 30, 6) as Steps
  const takerAt = at + LOG_RECORD_BYTES
  const feeAt = takerAt + (mode === TAKER_MIXED ? 6 : 0)
  const taker = readTaker(bytes, takerAt, mode, fill)
  const shares = { taker, maker: (fill - taker) as Steps }
  const settled: SettledFill = {
    maker: toHex(bytes.subarray(at, at + 20)) as Address,
    salt: flags >> 4n,
    isForced: (meta & 2) !== 0,
    side: flags & 1n ? 'LONG' : 'SHORT',
    reduceOnly: (flags & 2n) !== 0n,
    leverage: Number(word >> 57n),
    fill,
    taker,
    partialSlot: slot === NO_SLOT ? null : slot,
    isDead: (meta & 32) !== 0,
    isFeeCapped,
    fee: isFeeCapped ? (readUint(bytes, feeAt, 12) as Quote) : fillFee(spec, header.price, shares, header),
    freeDelta: readInt(bytes, at + 36, 12) as Quote,
  }
  return { fill: settled, end: feeAt + (isFeeCapped ? 12 : 0) }
}

/** The packed bytes in the event's data, which the ABI wraps in an offset and a length. */
function unwrap(data: string): Uint8Array {
  const bytes = fromHex(data)
  const length = readCount(bytes, 32, 32)
  invariant(
    readCount(bytes, 0, 32) === 32 && 64 + length <= bytes.length,
    'the event data is one ABI-encoded bytes value',
  )
  return bytes.subarray(64, 64 + length)
}

/**
 * Decodes a `BatchSettled` event of the market's contract.
 * A record without a stored fee has the fee that price and rates yield.
 */
export function decodeBatchSettled(topics: readonly string[], data: string, spec: MarketSpec): BatchSettled {
  invariant(topics[0] === BATCH_SETTLED_TOPIC, 'the event is BatchSettled')
  const bytes = unwrap(data)
  const header = readLogHeader(bytes)
  const count = readCount(bytes, 20, 2)
  const fills: SettledFill[] = []
  let at = LOG_HEADER_BYTES
  while (fills.length < count) {
    const { fill, end } = readRecord(bytes, at, header, spec)
    fills.push(fill)
    at = end
  }
  invariant(at === bytes.length, 'the event data ends with its last record')
  return { ...header, fills }
}
