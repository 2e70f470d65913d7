/** Positions, balance and lookup of an account. */
import type { FundingIndex, Price } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'
import { type App, answers } from '../http/types.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { BookmarkQuery, UserIdParams } from '../orders/schema.ts'
import type { ReadAfter } from '../read-after/read-after.ts'
import { isoTime } from '../wire/amounts.ts'
import { balanceOfUser, positionsOfUser, userByAddress } from './query.ts'
import { AddressParams, MarginBalance, Positions, PositionsQuery, User } from './schema.ts'
import { balanceView, positionView } from './view.ts'

export interface AccountPorts {
  readonly markets: MarketDirectory
  readonly readAfter: ReadAfter
}

const tags = ['account']
const own = { access: 'user' } as const
/** No market accrues funding yet, so every funding index is 0. */
const NO_FUNDING = 0n as FundingIndex

export function accountRoutes(app: App, { markets, readAfter }: AccountPorts): void {
  app.get(
    '/v0/positions/by-user/:user_id',
    {
      config: own,
      schema: {
        tags,
        summary: "The caller's open positions",
        operationId: 'listPositions',
        params: UserIdParams,
        querystring: PositionsQuery,
        response: answers(Positions),
      },
    },
    async (request) => {
      const { user_id: userId } = request.params
      const rows = await readAfter.read(request, (db) => positionsOfUser(db, userId, request.query.market_id))
      const positions = rows.map(async (row) => {
        const oracle = row.oracle_price as Price | null
        const prices = { oracle, mark: (row.mark_price as Price | null) ?? oracle, fundingIndex: NO_FUNDING }
        return positionView(await markets.byId(row.market_id), row, prices)
      })
      return { positions: await Promise.all(positions) }
    },
  )
  app.get(
    '/v0/balance/:user_id/margin',
    {
      config: own,
      schema: {
        tags,
        summary: "The caller's margin balance",
        operationId: 'getBalance',
        params: UserIdParams,
        querystring: BookmarkQuery,
        response: answers(MarginBalance),
      },
    },
    async (request) => {
      const { user_id: userId } = request.params
      const parts = await readAfter.read(request, (db) => balanceOfUser(db, userId))
      return { user_id: userId, asset: 'USDM' as const, balance: balanceView(parts) }
    },
  )
  app.get(
    '/v0/users/by-eoa/:address',
    {
      schema: {
        tags,
        summary: 'The user of a wallet',
        operationId: 'getUserByAddress',
        params: AddressParams,
        querystring: BookmarkQuery,
        response: answers(User),
      },
    },
    async (request) => {
      const { address } = request.params
      const user = await readAfter.read(request, (db) => userByAddress(db, address))
      if (user === undefined) throw new ApiError('USER_NOT_FOUND', { field: 'address', received: address })
      return { user_id: user.user_id, address: user.address, created_at: isoTime(user.created_at) }
    },
  )
}
