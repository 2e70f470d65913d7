/** Users with their funds and positions. */
import { accountsTable, positionsTable, putUsers } from '../../../db/written-tables.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import type { WrittenMark } from './changes.ts'
import { following, keeping, keepingByKey, statements, type TablePart } from './part.ts'

const users = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.users,
    {
      keyOf: ({ userId }) => userId,
      columnsOf: ({ userId, address, createdAt }) => ({ user_id: userId, address, created_at: createdAt }),
    },
    ({ put }) => statements(putUsers, put),
  )

const accounts = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.accounts,
    {
      keyOf: ({ userId }) => userId,
      columnsOf: ({ userId, free, pendingWithdrawal, reserved }) => ({
        user_id: userId,
        free,
        pending_withdrawal: pendingWithdrawal,
        reserved,
      }),
    },
    (rows) => keeping(accountsTable, rows),
  )

const positions = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.positions,
    {
      keyOf: ({ userId, marketId }) => `${userId}-${marketId}`,
      columnsOf: (row) => ({
        user_id: row.userId,
        market_id: row.marketId,
        size: row.size,
        entry_notional: row.entryNotional,
        folded_margin: row.foldedMargin,
        leverage: row.leverage,
        matched_size: row.matchedSize,
        matched_entry_notional: row.matchedEntryNotional,
        matched_folded_margin: row.matchedFoldedMargin,
        matched_leverage: row.matchedLeverage,
      }),
    },
    (rows) => keepingByKey(positionsTable, rows),
  )

export const accountParts = { users, accounts, positions }
