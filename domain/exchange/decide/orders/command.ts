/**
 * Trader commands about orders, and their answers.
 * Both are plain data: the api parses requests into commands and converts answers to responses.
 */
import type { Json, StoredBalance } from '../../../journal/request-rows.ts'
import type { AdmissionCode } from '../../../orders/admission.ts'
import type { BracketRole } from '../../../orders/brackets.ts'
import type { Side, SignedOrder } from '../../../orders/order.ts'
import type { FlagCode, OrderFlags } from '../../../orders/order-flags.ts'
import type { OrderRefusal } from '../../../orders/order-request.ts'
import type { SignerRefusal } from '../../../session-keys/session-key.ts'
import type {
  Address,
  MarketId,
  Millis,
  OrderHash,
  Price,
  Quote,
  Seq,
  Steps,
  UserId,
} from '../../../units.ts'
import type { OrderNote, OrderRow, SignatureRow } from '../../tables/orders.ts'
import type { RequestRow } from '../../tables/requests.ts'

/** Maximum number of items per command. */
export const MAX_ITEMS = 100

// ---------------------------------------------------------------------- commands

/** A signed order in a placement or a replacement. */
export interface NewOrder {
  /** Order with a verified signature. */
  readonly order: SignedOrder
  /** The trader's label; the signature does not cover it. */
  readonly clientOrderId: string | null
  /** If absent, `NO_FLAGS` apply. */
  readonly flags?: OrderFlags
  /**
   * The api found no ended order with this salt in market rows up to this sequence. Null: the api has not
   * searched.
   */
  readonly absentUpTo: Seq | null
}

export interface PlaceItem extends NewOrder {
  readonly kind: 'place'
}

/**
 * `refuse`: an order with filled or settling steps is not replaced. `reduce`: these steps count as filled
 * steps of the new order.
 */
export const IF_FILLED = ['refuse', 'reduce'] as const
export type IfFilled = (typeof IF_FILLED)[number]

/**
 * Atomically ends an order of the account and accepts another order in its place.
 * A new order without a label inherits the label of the replaced order.
 */
export interface ReplaceItem extends NewOrder {
  readonly kind: 'replace'
  readonly target: CancelTarget
  readonly ifFilled: IfFilled
}

export interface CancelItem {
  readonly kind: 'cancel'
  readonly target: CancelTarget
  readonly note: string | null
}

export type CancelTarget =
  /** `ended`: result of the api's search among ended orders; null: the api has not searched. */
  | { readonly hash: OrderHash; readonly ended: EndedLookup | null }
  /** The account's live order with this label. */
  | { readonly label: string }

/** Result of a search for an ended order by hash. */
export type EndedLookup =
  | { readonly found: EndedOrder }
  /** No such order ended with rows up to these sequences, by market. */
  | { readonly absentUpTo: readonly { readonly marketId: MarketId; readonly seq: Seq }[] }

export interface EndedOrder {
  readonly marketId: MarketId
  readonly accepted: Seq
  readonly account: UserId
  readonly status: OrderRow['status']
  readonly forced: boolean
}

/**
 * An item that the api refused. It keeps its position in the list; `refusal` is stored and returned
 * unchanged.
 */
export interface RefusedItem {
  readonly kind: 'refused'
  readonly refusal: Json
}

/**
 * A placement of an order that the api found among the ended orders. `answer` is stored and returned
 * unchanged.
 */
export interface AnsweredItem {
  readonly kind: 'answered'
  readonly answer: Json
}

export type Item = PlaceItem | ReplaceItem | CancelItem | RefusedItem | AnsweredItem

/** Id that the trader assigned to a command, so that it can be repeated safely. */
export interface ClientRequest {
  readonly id: string
  /** Digest of the endpoint and the body, in hex. */
  readonly digest: string
  /**
   * The api found no request with this id that completed with accounts rows up to this sequence.
   * Null: the api has not searched.
   */
  readonly absentUpTo: Seq | null
}

export interface OrdersCommand {
  readonly kind: 'orders'
  readonly userId: UserId
  readonly items: readonly Item[]
  /** True: one refused item refuses the whole command. */
  readonly isAtomic: boolean
  readonly request: ClientRequest | null
}

/** Cancels all live orders of the account, in one market or in all markets. */
export interface CancelAllCommand {
  readonly kind: 'cancel_all'
  readonly userId: UserId
  readonly marketId: MarketId | null
  readonly note: string | null
  /**
   * Markets with rows that the read model may not show yet.
   * A market is included if orders of the account have just ended there; the answer's bookmark then covers it.
   */
  readonly covers: readonly MarketId[]
}

/**
 * Continues a `cancel_all`. Orders accepted after its first step are newer than the command and stay open.
 */
export interface CancelAllStep extends Omit<CancelAllCommand, 'kind'> {
  readonly kind: 'cancel_all_step'
  /** Remaining markets with their journal heads at the first step, ascending by market. */
  readonly left: readonly Bookmark[]
  /** Markets that the answer's bookmark covers. */
  readonly markets: readonly MarketId[]
  readonly results: readonly Cancelled[]
}

// ---------------------------------------------------------------------- refusals

/** The order that blocks the item. `sameAs`: an earlier item of the same command that had no effect. */
export type StandingOrder =
  | { readonly orderId: string; readonly hash: OrderHash }
  | { readonly sameAs: number }

export interface SignerMismatch {
  readonly recovered: Address
  readonly expected: Address
}

export type PlaceRefusal =
  | { readonly code: 'MARKET_NOT_FOUND'; readonly received: MarketId }
  /** The order's maker is not the sending account. */
  | { readonly code: 'MAKER_MISMATCH'; readonly received: Address; readonly expected: Address }
  | { readonly code: 'SALT_USED'; readonly received: string; readonly order: StandingOrder }
  | ({ readonly code: 'SIGNATURE_MISMATCH' } & SignerMismatch)
  | (SignerRefusal & SignerMismatch)
  | { readonly code: 'CLIENT_ORDER_ID_USED'; readonly received: string; readonly order: StandingOrder }
  /** The same signed order was placed before with different flags. */
  | {
      readonly code: 'ORDER_FLAGS_DIFFER'
      readonly received: OrderFlags
      readonly expected: OrderFlags
      readonly order: StandingOrder
    }
  /** Another live order has this role in the bracket, or an exit precedes its entry. */
  | {
      readonly code: 'BRACKET_TAKEN'
      readonly received: number
      readonly role: BracketRole
      readonly order: StandingOrder
    }
  /** The sides conflict: all exits of a bracket have one side, and the entry has the other side. */
  | {
      readonly code: 'BRACKET_MISMATCH'
      readonly received: Side
      readonly expected: Side
      readonly order: StandingOrder
    }
  | { readonly code: 'CHAIN_UNSEEN'; readonly lastSeen: Millis | null }
  | OrderRefusal<AdmissionCode | FlagCode | 'LEVERAGE_CAP' | 'WOULD_TAKE'>

/** Refusals of a replacement, in addition to the refusals of its placement and its cancel. */
export type ReplaceRefusal =
  /** The new order was placed before and did not replace this order. */
  | { readonly code: 'NOT_A_REPLACEMENT'; readonly order: StandingOrder }
  | {
      readonly code: 'REPLACE_MISMATCH'
      readonly field: 'market_id' | 'side' | 'bracket_id'
      readonly expected: string
      readonly received: string
    }
  /** The order has ended, or has no remaining steps to replace. */
  | {
      readonly code: 'ORDER_NOT_REPLACEABLE'
      readonly order: StandingOrder
      readonly status: OrderRow['status']
    }
  /** `filled`: filled plus settling steps, as a decimal. */
  | { readonly code: 'ORDER_PARTLY_FILLED'; readonly order: StandingOrder; readonly filled: string }
  | {
      readonly code: 'REDUCED_BELOW_MINIMUM'
      readonly filled: string
      readonly expected: string
      readonly received: string
      readonly nearestValid: string
    }

export type CancelRefusal =
  | {
      readonly code: 'ORDER_NOT_FOUND'
      readonly target: { readonly hash: OrderHash } | { readonly label: string }
    }
  | { readonly code: 'NOT_YOURS'; readonly hash: OrderHash }
  | { readonly code: 'ORDER_FORCED'; readonly hash: OrderHash }

/** `FROM_API`: the api refused the item before the command arrived. */
export type ItemRefusal =
  | PlaceRefusal
  | ReplaceRefusal
  | CancelRefusal
  | { readonly code: 'FROM_API'; readonly refusal: Json }

export type CommandRefusal =
  | { readonly code: 'USER_NOT_FOUND'; readonly received: UserId }
  | { readonly code: 'MARKET_NOT_FOUND'; readonly received: MarketId }
  | { readonly code: 'TOO_MANY_ITEMS'; readonly received: number; readonly most: number }
  | { readonly code: 'CLIENT_REQUEST_REUSED'; readonly received: string }
  /** An atomic command has refused items; all of them are listed in command order. */
  | { readonly code: 'ITEMS_REFUSED'; readonly items: readonly RefusedAt[] }

export interface RefusedAt {
  readonly index: number
  readonly refusal: ItemRefusal
}

// ---------------------------------------------------------------------- answers

/**
 * A journal sequence of a market, or of the accounts (0). Readers that have reached it show the command's
 * effect.
 */
export interface Bookmark {
  readonly marketId: MarketId
  readonly seq: Seq
}

/** An order as stored in the state. The cost of its fills is in the read model. */
export interface OrderFacts {
  readonly order: OrderRow
  readonly signature: SignatureRow
  readonly note: OrderNote | null
}

export interface Placed {
  readonly kind: 'placed'
  readonly facts: OrderFacts
  /** True if the same order was placed before. */
  readonly isDuplicate: boolean
  /** Oracle price that the command was decided with; null if the market has none. */
  readonly oracle: Price | null
  readonly readAfter: Bookmark
  /** Matched position of the account in the market, for a reduce-only order: long positive. */
  readonly position?: Steps
  /** The replaced order; absent for a placement. */
  readonly replaced?: Replaced
}

export interface Replaced {
  readonly orderId: string
  /** The replaced order after the command; null in a repetition, and if the state no longer has the order. */
  readonly facts: OrderFacts | null
  /** Reservation that the order's end released. */
  readonly released: Quote
}

export interface Cancelled {
  readonly kind: 'cancelled'
  /** Null if the state no longer has the order. `ended` then contains the order that the api found. */
  readonly facts: OrderFacts | null
  readonly ended: EndedOrder | null
  readonly hash: OrderHash
  /** True if the order is cancelled, or will be cancelled once its batch has settled. */
  readonly cancelled: boolean
  readonly isDuplicate: boolean
  /** Reservation that the cancel released. */
  readonly released: Quote
  readonly readAfter: Bookmark
}

export interface Refused {
  readonly kind: 'refused'
  readonly refusal: ItemRefusal
}

export type ItemResult = Placed | Cancelled | Refused | AnsweredItem

export interface Balance {
  readonly free: Quote
  readonly reserved: Quote
  readonly pendingWithdrawal: Quote
  /** Margin of positions with funding up to the time of the command. */
  readonly positionMargin: Quote
}

export interface Done {
  readonly kind: 'done'
  /** One result per item, in item order; for a `cancel_all`, one per order. */
  readonly results: readonly ItemResult[]
  readonly balance: Balance
  readonly readAfter: Bookmark
}

export type OrdersAnswer =
  | Done
  /** The command was executed before; this is its stored result. */
  | { readonly kind: 'repeated'; readonly request: RequestRow }
  | { readonly kind: 'refused'; readonly refusal: CommandRefusal }
  | LookAgain

/**
 * Nothing was decided: the state may have dropped an order or request that the command depends on.
 * The api searches the read model at these rows, and sends the command again.
 */
export interface LookAgain {
  readonly kind: 'look_again'
  readonly upTo: readonly Bookmark[]
}

export const storedBalance = (balance: Balance): StoredBalance => ({
  free: balance.free.toString(),
  reserved: balance.reserved.toString(),
  pending_withdrawal: balance.pendingWithdrawal.toString(),
  position_margin: balance.positionMargin.toString(),
})
