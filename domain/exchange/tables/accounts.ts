/** Rows of users, of their funds, and of their positions. */
import type { Address, MarketId, Millis, Quote, Steps, UserId } from '../../units.ts'
import { count, hex, small, wei } from '../layout.ts'
import { RecordTable } from '../record-table.ts'
import type { StateCore } from '../table.ts'

export interface UserRow {
  readonly userId: UserId
  readonly address: Address
  readonly createdAt: Millis
}

/** Bank ledger of an account, and the part of it that live orders and adjustments in flight reserve. */
export interface AccountRow {
  readonly userId: UserId
  readonly free: Quote
  readonly pendingWithdrawal: Quote
  readonly reserved: Quote
}

/** A position on chain (mined), and with all unmined fills (matched). */
export interface PositionRow {
  readonly userId: UserId
  readonly marketId: MarketId
  readonly size: Steps
  readonly entryNotional: Quote
  readonly foldedMargin: Quote
  readonly leverage: number
  readonly matchedSize: Steps
  readonly matchedEntryNotional: Quote
  readonly matchedFoldedMargin: Quote
  readonly matchedLeverage: number
}

export const userTable = (core: StateCore): RecordTable<UserRow> =>
  new RecordTable(
    core,
    {
      name: 'users',
      seed: 1,
      fields: { userId: count<UserId>(), address: hex<Address>(20), createdAt: count<Millis>() },
      keyOf: ({ userId }) => [userId],
    },
    ['userId'],
  )

export const accountTable = (core: StateCore): RecordTable<AccountRow> =>
  new RecordTable(
    core,
    {
      name: 'accounts',
      seed: 2,
      fields: {
        userId: count<UserId>(),
        free: wei<Quote>(),
        pendingWithdrawal: wei<Quote>(),
        reserved: wei<Quote>(),
      },
      keyOf: ({ userId }) => [userId],
    },
    ['userId'],
  )

export const positionTable = (core: StateCore): RecordTable<PositionRow> =>
  new RecordTable(
    core,
    {
      name: 'positions',
      seed: 3,
      fields: {
        userId: count<UserId>(),
        marketId: small<MarketId>(),
        leverage: small<number>(),
        matchedLeverage: small<number>(),
        size: count<Steps>(),
        entryNotional: wei<Quote>(),
        foldedMargin: wei<Quote>(),
        matchedSize: count<Steps>(),
        matchedEntryNotional: wei<Quote>(),
        matchedFoldedMargin: wei<Quote>(),
      },
      keyOf: ({ userId, marketId }) => [userId, marketId],
    },
    ['userId', 'marketId'],
  )

export const flatPosition = (userId: UserId, marketId: MarketId): PositionRow => ({
  userId,
  marketId,
  size: 0 as Steps,
  entryNotional: 0n as Quote,
  foldedMargin: 0n as Quote,
  leverage: 0,
  matchedSize: 0 as Steps,
  matchedEntryNotional: 0n as Quote,
  matchedFoldedMargin: 0n as Quote,
  matchedLeverage: 0,
})
