/**
 * The exchange state: `decide` reads it, and only `apply` changes it. The README of this folder states its
 * laws.
 */
import type { MarketId, Seq } from '../units.ts'
import { AttemptIndex } from './attempt-index.ts'
import { Books } from './books.ts'
import { BracketIndex } from './bracket-index.ts'
import { Digest } from './digest.ts'
import type { DocumentTable } from './document-table.ts'
import { EndedOrders } from './ended-orders.ts'
import { Exposures } from './exposures.ts'
import { count, small } from './layout.ts'
import { MarketIndexes } from './market-indexes.ts'
import { NewestUser } from './newest-user.ts'
import { OrderIndex } from './order-index.ts'
import { PositionIndex } from './position-index.ts'
import { RecordTable } from './record-table.ts'
import { RelayIndex } from './relay-index.ts'
import { SwitchIndex } from './switch-index.ts'
import type { StateCore, Table } from './table.ts'
import {
  type AccountRow,
  accountTable,
  type PositionRow,
  positionTable,
  type UserRow,
  userTable,
} from './tables/accounts.ts'
import { type BlockTables, createBlockTables } from './tables/blocks.ts'
import { type ChainTables, createChainTables, type FundingRow } from './tables/chain.ts'
import {
  ActionQueues,
  type ActionRow,
  type AveragesRow,
  actionTable,
  averagesTable,
  type BatchRow,
  batchTable,
  type MarketRow,
  marketTable,
  type ProgressRow,
  progressTable,
} from './tables/markets.ts'
import {
  type FillRow,
  fillTable,
  type OrderNote,
  type OrderRow,
  orderNoteTable,
  orderTable,
  type SignatureRow,
  signatureTable,
} from './tables/orders.ts'
import { RequestOrder, type RequestRow, requestTable } from './tables/requests.ts'
import { createSwitchTables, type SwitchTables } from './tables/switches.ts'
import { UndoLog } from './undo-log.ts'
import { UserIndex } from './user-index.ts'

/** Head of a journal: the last sequence of a market, or of the accounts (market 0). */
export interface HeadRow {
  readonly marketId: MarketId
  readonly seq: Seq
  /**
   * Orders and requests that ended with rows up to this sequence are released: readers have them durably, so
   * the state drops them.
   */
  readonly releasedUpTo: Seq
}

/** The tables, and the indexes derived from them. */
export interface ExchangeState extends ChainTables, BlockTables, SwitchTables {
  readonly core: StateCore
  readonly heads: RecordTable<HeadRow>
  readonly users: RecordTable<UserRow>
  readonly accounts: RecordTable<AccountRow>
  readonly positions: RecordTable<PositionRow>
  readonly orders: RecordTable<OrderRow>
  readonly signatures: RecordTable<SignatureRow>
  readonly orderNotes: DocumentTable<OrderNote>
  readonly fills: RecordTable<FillRow>
  readonly markets: DocumentTable<MarketRow>
  readonly progress: RecordTable<ProgressRow>
  readonly averages: DocumentTable<AveragesRow>
  readonly batches: DocumentTable<BatchRow>
  readonly actions: DocumentTable<ActionRow>
  readonly requests: DocumentTable<RequestRow>
  readonly requestOrder: RequestOrder
  readonly books: Books
  readonly brackets: BracketIndex
  readonly ended: EndedOrders
  readonly exposures: Exposures
  readonly orderIndex: OrderIndex
  readonly positionIndex: PositionIndex
  readonly marketIndexes: MarketIndexes
  readonly newestUser: NewestUser
  readonly switchIndex: SwitchIndex
  readonly relayIndex: RelayIndex
  readonly attemptIndex: AttemptIndex
  readonly queues: ActionQueues
  readonly userIds: UserIndex
  /** Book sequences of the orders that a part fills, by market, batch and part. */
  readonly partFills: ReadonlyMap<string, readonly Seq[]>
  /** Per market: ids of the actions that changed its funding, ascending. */
  readonly lastFunding: ReadonlyMap<number, readonly number[]>
}

const headTable = (core: StateCore): RecordTable<HeadRow> =>
  new RecordTable(
    core,
    {
      name: 'heads',
      seed: 12,
      fields: { marketId: small<MarketId>(), seq: count<Seq>(), releasedUpTo: count<Seq>() },
      keyOf: ({ marketId }) => [marketId],
    },
    ['marketId'],
  )

/**
 * `secret` is mixed into the hashes of values that traders choose, so that no trader can force hash
 * collisions.
 * It does not affect the state.
 */
export function createState(secret = 0): ExchangeState {
  const core: StateCore = { digest: new Digest(), undo: new UndoLog() }
  const orders = orderTable(core)
  const actions = actionTable(core)
  const requests = requestTable(core)
  const users = userTable(core)
  const positions = positionTable(core)
  const books = new Books()
  const ended = new EndedOrders()
  orders.observe(books.follow)
  orders.observe(ended.follow)
  const brackets = new BracketIndex()
  orders.observe(brackets.follow)
  const signatures = signatureTable(core)
  const orderIndex = new OrderIndex(orders, signatures, secret)
  const exposures = new Exposures()
  orders.observe(exposures.follow)
  const fills = fillTable(core)
  const partFills = new Map<string, Seq[]>()
  fills.observe((before, after) => followFills(partFills, before, after))
  const chain = createChainTables(core)
  const switches = createSwitchTables(core)
  const lastFunding = new Map<number, number[]>()
  chain.fundings.observe((before, after) => followFunding(lastFunding, before, after))
  return {
    core,
    heads: headTable(core),
    users,
    accounts: accountTable(core),
    positions,
    orders,
    signatures,
    orderNotes: orderNoteTable(core),
    fills,
    markets: marketTable(core),
    progress: progressTable(core),
    averages: averagesTable(core),
    batches: batchTable(core),
    actions,
    requests,
    requestOrder: new RequestOrder(requests),
    books,
    brackets,
    ended,
    exposures,
    orderIndex,
    newestUser: new NewestUser(users),
    switchIndex: new SwitchIndex(switches.switches, switches.connectionSwitches),
    positionIndex: new PositionIndex(positions),
    relayIndex: new RelayIndex(chain),
    marketIndexes: new MarketIndexes({ positions, actions, ...chain }),
    attemptIndex: new AttemptIndex(chain.attempts),
    queues: new ActionQueues(actions),
    userIds: new UserIndex(users, secret),
    partFills,
    lastFunding,
    ...chain,
    ...switches,
    ...createBlockTables(core),
  }
}

function followFills(
  parts: Map<string, Seq[]>,
  before: FillRow | undefined,
  after: FillRow | undefined,
): void {
  if (before !== undefined && after !== undefined) return
  const { marketId, batchId, part, seq } = (after ?? before) as FillRow
  const key = `${marketId}-${batchId}-${part}`
  const seqs = parts.get(key) ?? []
  if (after !== undefined) {
    seqs.push(seq)
    parts.set(key, seqs)
    return
  }
  seqs.splice(seqs.indexOf(seq), 1)
  if (seqs.length === 0) parts.delete(key)
}

function followFunding(
  markets: Map<number, number[]>,
  before: FundingRow | undefined,
  after: FundingRow | undefined,
): void {
  if (before !== undefined && after !== undefined) return
  const { market_id, action_id } = (after ?? before) as FundingRow
  const ids = (markets.get(market_id) ?? []).filter((id) => id !== action_id)
  if (after !== undefined) ids.push(action_id)
  markets.set(
    market_id,
    ids.sort((a, b) => a - b),
  )
}

/** All tables, in checkpoint order. */
export const tablesOf = (state: ExchangeState): readonly Table[] => [
  state.heads,
  state.users,
  state.accounts,
  state.positions,
  state.orders,
  state.signatures,
  state.orderNotes,
  state.fills,
  state.markets,
  state.progress,
  state.averages,
  state.batches,
  state.actions,
  state.sessionKeys,
  state.forwarderNonces,
  state.nonceFloors,
  state.usedNonces,
  state.relays,
  state.attempts,
  state.liquidations,
  state.fundings,
  state.bank,
  state.switches,
  state.connectionSwitches,
  state.firedSwitches,
  state.lanes,
  state.requests,
  state.chain,
  state.blocks,
  state.blockFacts,
  state.transactions,
]

/** 16-byte digest. Equal states have equal digests, independent of the order in which rows were applied. */
export const digestOf = ({ core }: ExchangeState): Uint8Array => core.digest.bytes()
