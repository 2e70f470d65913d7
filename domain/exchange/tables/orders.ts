/** Rows of orders and of fills that are not final. */
import type { TriggerEvidence } from '../../journal/journal-row.ts'
import {
  ORDER_TYPES,
  type OrderStatus,
  type OrderType,
  type Side,
  STATUS_REASONS,
  type StatusReason,
  TIMES_IN_FORCE,
  type TimeInForce,
} from '../../orders/order.ts'
import { LONGEST_BUILDER } from '../../orders/order-flags.ts'
import type { ClosingReason } from '../../orders/order-state.ts'
import type {
  Address,
  MarketId,
  Millis,
  OrderHash,
  Quote,
  Seconds,
  Seq,
  Steps,
  Ticks,
  UserId,
} from '../../units.ts'
import { DocumentTable } from '../document-table.ts'
import {
  count,
  flag,
  hex,
  oneOf,
  optionalCount,
  optionalHex,
  optionalOf,
  optionalText,
  small,
  wei,
} from '../layout.ts'
import { RecordTable } from '../record-table.ts'
import type { StateCore } from '../table.ts'

/**
 * An accepted order without the fields that are fixed at signing and read only at settlement.
 * `OpenOrder` documents the fields.
 */
export interface OrderRow {
  readonly marketId: MarketId
  /** Sequence of the acceptance; the order id contains it. */
  readonly accepted: Seq
  /** Seq of the order in the book. */
  readonly seq: Seq
  readonly account: UserId
  readonly side: Side
  readonly type: OrderType
  readonly price: Ticks
  /** Steps that may fill. */
  readonly quantity: Steps
  /** Signed steps beyond `quantity` that must not fill: the filled steps of the replaced order. */
  readonly unused: Steps
  readonly trigger: Ticks
  readonly leverage: number
  readonly reduceOnly: boolean
  readonly timeInForce: TimeInForce
  readonly postOnly: boolean
  /** Bracket number; 0: none. */
  readonly bracket: number
  /** True for an exit that waits until its bracket's entry has matched. Its trigger is not watched before. */
  readonly dormant: boolean
  /** Acceptance sequence of the replaced order; 0: none. */
  readonly replaces: Seq
  readonly forced: boolean
  readonly expiration: Seconds
  readonly aliveUntil: Seconds
  readonly acceptedAt: Millis
  readonly salt: number
  /** Hash of the trader's label, for the index of live orders by label; 0: no label. */
  readonly labelHash: number
  readonly status: OrderStatus
  readonly statusReason: StatusReason | null
  readonly closingReason: ClosingReason | null
  readonly filled: Steps
  /** Sum of price × steps over the filled steps, in ticks × steps. */
  readonly filledValue: bigint
  /** Fees of the filled steps; negative for rebates. */
  readonly fee: Quote
  readonly settling: Steps
  readonly openable: Steps
  readonly reservedPrice: Ticks
  readonly reserved: Quote
  readonly held: Quote
  readonly partialSlot: number | null
  readonly triggeredAt: Millis | null
  /** Number of consecutive batches that left a forced order unfilled. */
  readonly widenings: number
  readonly endedAt: Millis | null
  /** Sequence of the row that ended the order; 0 while it is live. */
  readonly endedSeq: Seq
}

/** Identity and signature of an order; the signature is null for forced orders. */
export interface SignatureRow {
  readonly marketId: MarketId
  readonly accepted: Seq
  readonly hash: OrderHash
  readonly signer: Address | null
  readonly signature: `0x${string}` | null
  readonly clientOrderId: string | null
  readonly builder: string | null
}

/** Optional texts that few orders have. */
export interface OrderNote {
  readonly orderId: string
  /** The trader's reason for a cancel. */
  readonly note: string | null
  /** See `OrderLife`. */
  readonly closedBy: string | null
  readonly triggered: TriggerEvidence | null
}

export const FILL_STATUSES = ['MATCHED', 'SUBMITTED', 'MINED', 'RETRYING'] as const

/** A fill from its match until its block is confirmed. */
export interface FillRow {
  readonly marketId: MarketId
  readonly batchId: number
  readonly part: number
  /** Index of the fill within its part. */
  readonly place: number
  /** Acceptance sequence of the fill's order. */
  readonly accepted: Seq
  /** Book seq of the fill's order at the match; the fill id contains it. */
  readonly seq: Seq
  readonly account: UserId
  readonly side: Side
  readonly steps: Steps
  readonly takerSteps: Steps
  readonly partialSlot: number | null
  readonly held: Quote
  readonly status: (typeof FILL_STATUSES)[number]
}

const CLOSING_REASONS = STATUS_REASONS.filter((reason): reason is ClosingReason => reason !== 'FILLED')
const SIDES = ['LONG', 'SHORT'] as const
const STATUSES = [
  'OPEN',
  'FILLED',
  'CANCELLED',
  'EXPIRED',
  'PENDING_TRIGGER',
  'CANCEL_PENDING_FINALIZE',
] as const satisfies readonly OrderStatus[]

const SIGNATURE_BYTES = 66
const LONGEST_LABEL = 64

export const orderTable = (core: StateCore): RecordTable<OrderRow> =>
  new RecordTable(
    core,
    {
      name: 'orders',
      seed: 4,
      fields: {
        marketId: small<MarketId>(),
        leverage: small<number>(),
        labelHash: small<number>(),
        bracket: small<number>(),
        accepted: count<Seq>(),
        seq: count<Seq>(),
        account: count<UserId>(),
        side: oneOf(SIDES),
        type: oneOf(ORDER_TYPES),
        reduceOnly: flag,
        forced: flag,
        postOnly: flag,
        dormant: flag,
        timeInForce: oneOf(TIMES_IN_FORCE),
        status: oneOf(STATUSES),
        statusReason: optionalOf(STATUS_REASONS),
        closingReason: optionalOf(CLOSING_REASONS),
        price: count<Ticks>(),
        quantity: count<Steps>(),
        unused: count<Steps>(),
        replaces: count<Seq>(),
        trigger: count<Ticks>(),
        expiration: count<Seconds>(),
        aliveUntil: count<Seconds>(),
        acceptedAt: count<Millis>(),
        salt: count<number>(),
        filled: count<Steps>(),
        filledValue: wei<bigint>(),
        fee: wei<Quote>(),
        settling: count<Steps>(),
        openable: count<Steps>(),
        reservedPrice: count<Ticks>(),
        reserved: wei<Quote>(),
        held: wei<Quote>(),
        partialSlot: optionalCount<number>(),
        triggeredAt: optionalCount<Millis>(),
        widenings: small<number>(),
        endedAt: optionalCount<Millis>(),
        endedSeq: count<Seq>(),
      },
      keyOf: ({ marketId, accepted }) => [marketId, accepted],
    },
    ['marketId', 'accepted'],
  )

export const signatureTable = (core: StateCore): RecordTable<SignatureRow> =>
  new RecordTable(
    core,
    {
      name: 'signatures',
      seed: 5,
      fields: {
        marketId: small<MarketId>(),
        accepted: count<Seq>(),
        hash: hex<OrderHash>(32),
        signer: optionalHex<Address>(20),
        signature: optionalHex<`0x${string}`>(SIGNATURE_BYTES),
        clientOrderId: optionalText(LONGEST_LABEL),
        builder: optionalText(LONGEST_BUILDER),
      },
      keyOf: ({ marketId, accepted }) => [marketId, accepted],
    },
    ['marketId', 'accepted'],
  )

export const orderNoteTable = (core: StateCore): DocumentTable<OrderNote> =>
  new DocumentTable(core, { name: 'order notes', seed: 6, keyOf: ({ orderId }) => orderId })

export const fillTable = (core: StateCore): RecordTable<FillRow> =>
  new RecordTable(
    core,
    {
      name: 'fills',
      seed: 7,
      fields: {
        marketId: small<MarketId>(),
        part: small<number>(),
        place: small<number>(),
        batchId: count<number>(),
        accepted: count<Seq>(),
        seq: count<Seq>(),
        account: count<UserId>(),
        side: oneOf(SIDES),
        status: oneOf(FILL_STATUSES),
        steps: count<Steps>(),
        takerSteps: count<Steps>(),
        partialSlot: optionalCount<number>(),
        held: wei<Quote>(),
      },
      keyOf: ({ marketId, batchId, part, seq }) => [marketId, batchId, part, seq],
    },
    ['marketId', 'batchId', 'part', 'seq'],
  )
