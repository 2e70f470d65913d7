/** Commands of traders about orders, and the answers to them. All of it is data: the api parses requests to commands, and maps answers to its own. */
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

/** Most items of one command. */
export const MAX_ITEMS = 100

// ---------------------------------------------------------------------- commands

/** A signed order, as a placement or a replacement brings it. */
export interface NewOrder {
  /** With a verified signature. */
  readonly order: SignedOrder
  /** The trader's label, which no signature covers. */
  readonly clientOrderId: string | null
  /** Absent: `NO_FLAGS`. */
  readonly flags?: OrderFlags
  /** The api has found no order with the salt among those that ended with rows of the market up to this one; null: it has not looked. */
  readonly absentUpTo: Seq | null
}

export interface PlaceItem extends NewOrder {
  readonly kind: 'place'
}

/** `refuse`: an order of which steps are filled or settling is not replaced. `reduce`: they count as filled steps of the new order. */
export const IF_FILLED = ['refuse', 'reduce'] as const
export type IfFilled = (typeof IF_FILLED)[number]

/** Ends an order of the account and accepts another one in its place, or does neither. A new order without a label gets that of the former. */
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
  /** `ended`: what the api has found among the ended orders; null: it has not looked. */
  | { readonly hash: OrderHash; readonly ended: EndedLookup | null }
  /** The live order of the account with the label. */
  | { readonly label: string }

/** The result of a look-up of an ended order by its hash. */
export type EndedLookup =
  | { readonly found: EndedOrder }
  /** There is none that ended with rows up to these, by market. */
  | { readonly absentUpTo: readonly { readonly marketId: MarketId; readonly seq: Seq }[] }

export interface EndedOrder {
  readonly marketId: MarketId
  readonly accepted: Seq
  readonly account: UserId
  readonly status: OrderRow['status']
  readonly forced: boolean
}

/** An item that the api has refused; it keeps its place among the items. `refusal` is stored and returned unchanged. */
export interface RefusedItem {
  readonly kind: 'refused'
  readonly refusal: Json
}

/** A placement whose order had been placed before and has ended, as the api has found. `answer` is stored and returned unchanged. */
export interface AnsweredItem {
  readonly kind: 'answered'
  readonly answer: Json
}

export type Item = PlaceItem | ReplaceItem | CancelItem | RefusedItem | AnsweredItem

/** The id that the trader has assigned to a command, so that it can be repeated safely. */
export interface ClientRequest {
  readonly id: string
  /** Digest of endpoint and body, in hex. */
  readonly digest: string
  /** The api has found no request with the id among those completed with rows of the accounts up to this one; null: it has not looked. */
  readonly absentUpTo: Seq | null
}

export interface OrdersCommand {
  readonly kind: 'orders'
  readonly userId: UserId
  readonly items: readonly Item[]
  /** Whether one refused item refuses all. */
  readonly isAtomic: boolean
  readonly request: ClientRequest | null
}

/** Cancels all live orders of the account, in one market or in all. */
export interface CancelAllCommand {
  readonly kind: 'cancel_all'
  readonly userId: UserId
  readonly marketId: MarketId | null
  readonly note: string | null
  /** Markets of which the read model does not show every row yet: the bookmark includes those in which orders of the account have ended a moment ago. */
  readonly covers: readonly MarketId[]
}

/** Continues a `cancel_all`. Orders that were accepted after its first step are newer than the command, and stay. */
export interface CancelAllStep extends Omit<CancelAllCommand, 'kind'> {
  readonly kind: 'cancel_all_step'
  /** The heads at the first step of the markets that it still has to pass, ascending by market. */
  readonly left: readonly Bookmark[]
  /** Markets that the answer's bookmark covers. */
  readonly markets: readonly MarketId[]
  readonly results: readonly Cancelled[]
}

// ---------------------------------------------------------------------- refusals

/** The order that stands in the way. `sameAs`: an earlier item of the same command, which has had no effect. */
export type StandingOrder =
  | { readonly orderId: string; readonly hash: OrderHash }
  | { readonly sameAs: number }

export interface SignerMismatch {
  readonly recovered: Address
  readonly expected: Address
}

export type PlaceRefusal =
  | { readonly code: 'MARKET_NOT_FOUND'; readonly received: MarketId }
  /** The order's maker is not the account that sends it. */
  | { readonly code: 'MAKER_MISMATCH'; readonly received: Address; readonly expected: Address }
  | { readonly code: 'SALT_USED'; readonly received: string; readonly order: StandingOrder }
  | ({ readonly code: 'SIGNATURE_MISMATCH' } & SignerMismatch)
  | (SignerRefusal & SignerMismatch)
  | { readonly code: 'CLIENT_ORDER_ID_USED'; readonly received: string; readonly order: StandingOrder }
  /** The same signed order was placed before, with other flags. */
  | {
      readonly code: 'ORDER_FLAGS_DIFFER'
      readonly received: OrderFlags
      readonly expected: OrderFlags
      readonly order: StandingOrder
    }
  /** A live order has the role in the bracket; an entry comes before the exits. */
  | {
      readonly code: 'BRACKET_TAKEN'
      readonly received: number
      readonly role: BracketRole
      readonly order: StandingOrder
    }
  /** Exits are of one side, and the entry is of the other. */
  | {
      readonly code: 'BRACKET_MISMATCH'
      readonly received: Side
      readonly expected: Side
      readonly order: StandingOrder
    }
  | { readonly code: 'CHAIN_UNSEEN'; readonly lastSeen: Millis | null }
  | OrderRefusal<AdmissionCode | FlagCode | 'LEVERAGE_CAP' | 'WOULD_TAKE'>

/** Beside those of its placement and those of a cancel. */
export type ReplaceRefusal =
  /** The new order has been placed before, and has not replaced this order. */
  | { readonly code: 'NOT_A_REPLACEMENT'; readonly order: StandingOrder }
  | {
      readonly code: 'REPLACE_MISMATCH'
      readonly field: 'market_id' | 'side' | 'bracket_id'
      readonly expected: string
      readonly received: string
    }
  /** The order has ended, or nothing of it is left to replace. */
  | {
      readonly code: 'ORDER_NOT_REPLACEABLE'
      readonly order: StandingOrder
      readonly status: OrderRow['status']
    }
  /** `filled`: settling steps included, as a decimal. */
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

/** `FROM_API`: the item arrived refused. */
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
  /** An atomic command with refused items: each of them, in their order. */
  | { readonly code: 'ITEMS_REFUSED'; readonly items: readonly RefusedAt[] }

export interface RefusedAt {
  readonly index: number
  readonly refusal: ItemRefusal
}

// ---------------------------------------------------------------------- answers

/** A sequence in the journal of a market, or of the accounts (0): readers that have reached it show the effect. */
export interface Bookmark {
  readonly marketId: MarketId
  readonly seq: Seq
}

/** An order as the state has it. What its fills have cost is in the read model. */
export interface OrderFacts {
  readonly order: OrderRow
  readonly signature: SignatureRow
  readonly note: OrderNote | null
}

export interface Placed {
  readonly kind: 'placed'
  readonly facts: OrderFacts
  /** The same order had been placed before. */
  readonly isDuplicate: boolean
  /** The oracle price on which the command was decided; null if the market has none. */
  readonly oracle: Price | null
  readonly readAfter: Bookmark
  /** The account's matched position in the market, for a reduce-only order: long positive. */
  readonly position?: Steps
  /** The order that it has replaced; absent for a placement. */
  readonly replaced?: Replaced
}

export interface Replaced {
  readonly orderId: string
  /** As the command leaves it; null for a repetition, and for an order that the state no longer has. */
  readonly facts: OrderFacts | null
  /** Part of the account's reservation that its end has released. */
  readonly released: Quote
}

export interface Cancelled {
  readonly kind: 'cancelled'
  /** Null for an order that the state no longer has: `ended` is what the api has found. */
  readonly facts: OrderFacts | null
  readonly ended: EndedOrder | null
  readonly hash: OrderHash
  /** The order is cancelled, or will be once its batch has settled. */
  readonly cancelled: boolean
  readonly isDuplicate: boolean
  /** Part of the account's reservation that the cancel has released. */
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
  /** With funding up to the time of the command. */
  readonly positionMargin: Quote
}

export interface Done {
  readonly kind: 'done'
  /** One per item in their order; one per order for a `cancel_all`. */
  readonly results: readonly ItemResult[]
  readonly balance: Balance
  readonly readAfter: Bookmark
}

export type OrdersAnswer =
  | Done
  /** The command was executed before: its stored result. */
  | { readonly kind: 'repeated'; readonly request: RequestRow }
  | { readonly kind: 'refused'; readonly refusal: CommandRefusal }
  | LookAgain

/**
 * Nothing was decided: an ended order or request that the command depends on may have left the state. The api looks it up in readers that have reached
 * these rows, and sends the command again with the result.
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
