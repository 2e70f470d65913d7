/** Reads of the caller's balance, and the public lookup of a user. */
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import type { App } from '../http/types.ts'
import type { ReadAfter } from '../read-after/read-after.ts'
import { isoTime } from '../wire/amounts.ts'
import { BookmarkQuery, UserIdParams } from '../wire/schema.ts'
import { BALANCE_TABLES, balanceOfUser, USER_TABLES, userByAddress } from './query.ts'
import { AddressParams, MarginBalance, User } from './schema.ts'
import { accountBalanceView } from './view.ts'

const tags = ['account']

export interface AccountPorts {
  readonly readAfter: ReadAfter
  readonly clock: Clock
}

export function accountRoutes(app: App, { readAfter, clock }: AccountPorts): void {
  app.get(
    '/v0/balance/:user_id/margin',
    {
      config: { access: 'user' },
      schema: {
        tags,
        summary: "Get the caller's margin balance",
        operationId: 'getBalance',
        params: UserIdParams,
        querystring: BookmarkQuery,
        response: { 200: MarginBalance },
      },
    },
    async (request) => {
      const { user_id: userId } = request.params
      const parts = await readAfter.read(request, { tables: BALANCE_TABLES }, (db) =>
        balanceOfUser(db, userId, clock.now()),
      )
      return { user_id: userId, asset: 'USDM' as const, balance: accountBalanceView(parts) }
    },
  )
  app.get(
    '/v0/users/by-eoa/:address',
    {
      config: { errors: ['USER_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'Find the user of a wallet',
        operationId: 'getUserByAddress',
        params: AddressParams,
        querystring: BookmarkQuery,
        response: { 200: User },
      },
    },
    async (request) => {
      const { address } = request.params
      const user = await readAfter.read(request, { tables: USER_TABLES }, (db) => userByAddress(db, address))
      if (user === undefined) throw new ApiError('USER_NOT_FOUND', { field: 'address', received: address })
      return { user_id: user.user_id, address: user.address, created_at: isoTime(user.created_at) }
    },
  )
}
