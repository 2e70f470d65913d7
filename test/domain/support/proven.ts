/** The proof of a cleared batch, and its parts as the chain settles them. */
import { getBytes, keccak256, zeroPadValue } from 'ethers'
import type { Cleared, Fill } from '../../../domain/auction/clearing.ts'
import { type Part, splitIntoParts } from '../../../domain/auction/parts.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import { toHex } from '../../../domain/hex.ts'
import type { Order } from '../../../domain/orders/order.ts'
import { hashOrder } from '../../../domain/orders/order-hash.ts'
import { commitment } from '../../../domain/proof/commitment.ts'
import { stateBatch, statedSequence } from '../../../domain/proof/statement.ts'
import type { BatchProof, MinedPart, ProofPart } from '../../../domain/proof/verify.ts'
import { digestOf, toWire } from '../../../domain/proof/wire.ts'
import { decodeSettleBatch } from '../../../domain/settlement/decode-settlement.ts'
import type { BatchSettled, ForcedFill, SettlementFill } from '../../../domain/settlement/settlement.ts'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import type { Address, FundingIndex, Millis, Quote, Seconds, Seq, Ticks } from '../../../domain/units.ts'

export const keccak = (message: Uint8Array): Uint8Array => getBytes(keccak256(message))

const BATCH = 7
const ACTION = 12
const word = (value: number): `0x${string}` =>
  zeroPadValue(`0x${value.toString(16).padStart(4, '0')}`, 32) as `0x${string}`
const addressOf = (account: number): Address =>
  zeroPadValue(`0x${account.toString(16).padStart(4, '0')}`, 20) as Address
const saltOf = (seq: Seq): string => word(0x1000 + seq)
const transactionOf = (part: number): string => word(0x2000 + part)

export interface ProvenBatch {
  readonly proof: BatchProof
  /** By transaction hash. */
  readonly mined: ReadonlyMap<string, MinedPart>
}

/** All parts are settled, unless `settled` says how many are. */
export function provenBatch(clearing: Cleared, settled = Number.POSITIVE_INFINITY): ProvenBatch {
  const { inputs } = clearing
  const sequence = statedSequence(inputs)
  const bySeq = new Map(sequence.map((order, index) => [order.seq, { order, place: index + 1 }]))
  const hashOf = (order: RestingOrder): string => hashOrder(signedOrder(clearing, order), inputs.spec, keccak)
  const committed = (seq: Seq) => {
    const orderHash = hashOf(bySeq.get(seq)?.order as RestingOrder)
    return { salt: saltOf(seq), orderHash, marketId: inputs.spec.marketId, batchId: BATCH }
  }
  const oracle = {
    price: inputs.oracle,
    observedAt: (inputs.asOf - 100) as Millis,
    signatures: `0x${'ab'.repeat(65)}` as const,
  }
  const statement = toWire(
    stateBatch({ inputs, oracle, batchId: BATCH, commitmentOf: (seq) => commitment(keccak, committed(seq)) }),
  )
  const parts = splitIntoParts(clearing)
  const toProofPart = ({ fills }: Part, index: number): ProofPart => {
    const isSettled = index < settled
    const proofFills = fills.map(({ seq, fill, taker }) => {
      const { order, place } = bySeq.get(seq) as { order: RestingOrder; place: number }
      const isOpen = isSettled && !order.forced
      return {
        order: place,
        steps: fill,
        taker_steps: taker,
        order_hash: isOpen ? hashOf(order) : null,
        salt: isOpen ? saltOf(seq) : null,
      }
    })
    return {
      part: index + 1,
      status: isSettled ? 'settled' : 'settling',
      transaction_hash: isSettled ? transactionOf(index + 1) : null,
      fills: proofFills.sort((a, b) => a.order - b.order),
    }
  }
  const proofParts = parts.map(toProofPart)
  const proof: BatchProof = {
    ...{ market_id: inputs.spec.marketId, symbol: inputs.spec.symbol, batch_id: BATCH },
    status: settled >= parts.length ? 'SETTLED' : 'SETTLING',
    ...{ digest: digestOf(statement, keccak), statement, parts: proofParts },
  }
  const orderOf = (seq: Seq): RestingOrder => bySeq.get(seq)?.order as RestingOrder
  const mined = parts.map((part, index) =>
    minedPart(clearing, { ...part, index, parts: parts.length }, oracle, orderOf),
  )
  return { proof, mined: new Map(mined.map((part, index) => [transactionOf(index + 1), part])) }
}

/** The order that a trader could have signed for a resting order; one step more than what is left of it has filled. */
const signedOrder = ({ inputs }: Cleared, order: RestingOrder): Order => ({
  marketId: inputs.spec.marketId,
  maker: addressOf(order.account),
  side: order.side,
  type: order.triggered ? `STOP_${order.type}` : order.type,
  price: order.limit,
  quantity: (order.remaining + 1) as Order['quantity'],
  trigger: (order.triggered ? 100 : 0) as Ticks,
  leverage: order.leverage,
  reduceOnly: order.reduceOnly,
  expiration: 0 as Seconds,
  salt: BigInt(order.seq),
})

interface NumberedPart extends Part {
  readonly index: number
  readonly parts: number
}

function minedPart(
  clearing: Cleared,
  { fills, index, parts }: NumberedPart,
  oracle: BatchSettledOracle,
  orderOf: (seq: Seq) => RestingOrder,
): MinedPart {
  const { spec, asOf } = clearing.inputs
  const { marketId, makerFee, takerFee, trader, chainId } = spec
  const terms = {
    actionId: ACTION + index,
    batchId: BATCH,
    part: index + 1,
    parts,
    asOf,
    price: clearing.price,
    makerFee,
    takerFee,
  }
  const call = encodeSettleBatch(
    { ...terms, marketId, oracle, fills: fills.map((fill) => sentFill(clearing, fill, orderOf(fill.seq))) },
    spec,
  )
  const settled: BatchSettled = {
    ...terms,
    ...{ oraclePrice: oracle.price, observedAt: oracle.observedAt, fundingIndex: 0n as FundingIndex },
    fills: fills.map((fill) => {
      const { account, side, reduceOnly, leverage, forced, seq } = orderOf(fill.seq)
      const shares = { fill: fill.fill, taker: fill.taker, fee: fill.fee, freeDelta: 0n as Quote }
      const state = { partialSlot: null, isDead: false, isFeeCapped: false, isForced: forced }
      return { maker: addressOf(account), salt: BigInt(seq), side, reduceOnly, leverage, ...shares, ...state }
    }),
  }
  return { chainId: Number(chainId), to: trader, sent: decodeSettleBatch(toHex(call), marketId), settled }
}

type BatchSettledOracle = {
  readonly price: Cleared['inputs']['oracle']
  readonly observedAt: Millis
  readonly signatures: `0x${string}`
}

function sentFill(
  clearing: Cleared,
  { fill, taker }: Fill,
  order: RestingOrder,
): SettlementFill | ForcedFill {
  const { account, side, seq } = order
  if (order.forced) return { account: addressOf(account), number: BigInt(seq), side, fill, taker }
  const signed = { ...signedOrder(clearing, order), signature: `0x${'11'.repeat(64)}1b01` }
  return { order: signed as unknown as SettlementFill['order'], fill, taker, partialSlot: null }
}
