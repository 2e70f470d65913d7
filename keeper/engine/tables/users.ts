/** Users. Their funds and positions are in the read model. */
import { putUsers } from '../../../db/written-tables.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import type { WrittenMark } from './changes.ts'
import { following, statements, type TablePart } from './part.ts'

export const users = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.users,
    {
      keyOf: ({ userId }) => userId,
      columnsOf: ({ userId, address, createdAt }) => ({ user_id: userId, address, created_at: createdAt }),
    },
    ({ put }) => statements(putUsers, put),
  )
