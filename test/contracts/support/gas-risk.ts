/** Gas of the actions of backstop, deleveraging and wind-down, per action or per account. */
import { chain, crowdedExchange, type Exchange, settle } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { type GasTable, gasOf } from './gas-charge.ts'
import {
  type ActionInput,
  deleverage,
  INSOLVENCY_WINDOW,
  inherit,
  pass,
  trade,
  withBackstop,
} from './risk.ts'
import { asAnyAccount, freeze, poke } from './wind-down.ts'

const COUNTERPARTIES = 10

const user = (exchange: Exchange, at: number) => exchange.users[at] as Exchange['users'][number]

/** Users 0 and 1 bought 1 each at 100 with 5; ten others sold 0.2 each with 10. */
async function crowd(): Promise<Exchange> {
  const exchange = await crowdedExchange(2 + COUNTERPARTIES)
  await withBackstop(exchange, e18('100000'), e18('1000'))
  await settle(exchange, {
    price: 1000,
    fills: exchange.users.map((by, at) =>
      at < 2
        ? ({ by, side: 'LONG', fill: 1000, leverage: 20 } as const)
        : ({ by, side: 'SHORT', fill: 200, leverage: 2 } as const),
    ),
  })
  return exchange
}

const bankrupt = { price: e18('94') }
const counterparties = (exchange: Exchange) =>
  exchange.users
    .slice(2)
    .sort((a, b) => (a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1))
    .map((of) => ({ of, steps: 100 }))

async function liquidations(table: GasTable): Promise<void> {
  const { networkHelpers } = await chain()
  const exchange = await networkHelpers.loadFixture(crowd)
  table['inherit, first position'] = await gasOf(inherit(exchange, user(exchange, 0), bankrupt))
  const again = await networkHelpers.takeSnapshot()
  table.inherit = await gasOf(inherit(exchange, user(exchange, 1), bankrupt))
  await again.restore()
  const known = await lastReport(exchange)
  table['inherit, at the last report'] = await gasOf(inherit(exchange, user(exchange, 1), known))
}

/** The last report that the market used: it needs no proof. */
async function lastReport(exchange: Exchange): Promise<ActionInput> {
  const { oraclePrice, observedAt } = await exchange.trader.lastReference()
  return { price: oraclePrice, observedAt: Number(observedAt), signers: [] }
}

async function deleveragings(table: GasTable): Promise<void> {
  const { networkHelpers } = await chain()
  const exchange = await networkHelpers.loadFixture(crowd)
  const listed = counterparties(exchange)
  const one = deleverage(exchange, user(exchange, 0), listed.slice(0, 1), bankrupt)
  table['deleverage, one counterparty'] = await gasOf(one)
  const known = deleverage(exchange, user(exchange, 0), listed.slice(1, 2), await lastReport(exchange))
  table['deleverage, one counterparty, at the last report'] = await gasOf(known)
  const ten = deleverage(exchange, user(exchange, 1), listed, bankrupt)
  table['deleverage, per counterparty of ten'] = await gasOf(ten, COUNTERPARTIES)
}

async function windDowns(table: GasTable): Promise<void> {
  const { networkHelpers } = await chain()
  const current = { exchange: await networkHelpers.loadFixture(crowd) }
  const { exchange } = current
  const { trader } = exchange
  table.heartbeat = await gasOf(trader.heartbeat())
  await trade(exchange, user(exchange, 2), user(exchange, 3), { steps: 100, price: 1000, leverage: 2 })
  await pass(exchange, 60)
  table.poke = await gasOf(poke(current, e18('94')))
  await freeze(current)
  const market = await asAnyAccount(current)
  const insolvent = [user(exchange, 0).address, user(exchange, 1).address]
  table['report insolvent, per account of two'] = await gasOf(market.reportInsolvent(insolvent), 2)
  await pass(exchange, INSOLVENCY_WINDOW)
  await market.claim(user(exchange, 4).address)
  table.claim = await gasOf(market.claim(user(exchange, 5).address))
}

export async function riskGas(): Promise<GasTable> {
  const table: GasTable = {}
  for (const measure of [liquidations, deleveragings, windDowns]) await measure(table)
  return table
}
