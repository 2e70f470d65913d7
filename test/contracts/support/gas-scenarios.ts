/**
 * Named gas scenarios besides plain settlement. To add one: a name and a measurement on a fresh exchange of the fixture. The
 * golden file and `npm run bench:gas` read this list.
 */
import type { Wallet } from 'ethers'
import {
  caller,
  type Exchange,
  type FillInput,
  pair,
  perpetualExchange,
  settle,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { type Gas, type GasTable, gasAbove, gasOf } from './gas-charge.ts'
import { deleverage, inherit, withBackstop } from './risk.ts'

export interface GasScenario {
  readonly name: string
  readonly measure: (exchange: Exchange) => Promise<Gas>
}

const PRICE = 500_000
const [ALICE, BOB, CAROL, DAVE] = ['alice', 'bob', 'carol', 'dave'].map(wallet) as [
  Wallet,
  Wallet,
  Wallet,
  Wallet,
]

/** Positions, salt words, slots and the market itself are already in use. */
async function warmUp(exchange: Exchange): Promise<void> {
  const used = pair(ALICE, BOB, 10, { salt: 1_000n, quantity: 20, slot: 3 })
  await settle(exchange, { price: PRICE, fills: [...used, ...pair(CAROL, DAVE, 10, { salt: 1_000n })] })
}

/** Extra gas of the same batch with Alice's order changed. */
async function extra(exchange: Exchange, change: Partial<FillInput>): Promise<Gas> {
  const fills = (salt: bigint): FillInput[] => [...pair(ALICE, BOB, 10, { salt })]
  const plain = await gasOf(settle(exchange, { price: PRICE, fills: fills(1_001n) }))
  const [first, second] = fills(1_002n)
  const changed = [{ ...(first as FillInput), ...change }, second as FillInput]
  return gasAbove(await gasOf(settle(exchange, { price: PRICE, fills: changed })), plain)
}

/** A batch of four, `count` of them signed by session keys. */
async function withSessionKeys(exchange: Exchange, count: number, salt: bigint): Promise<Gas> {
  const makers = [ALICE, CAROL, BOB, DAVE]
  const fills = makers.map((by, index): FillInput => {
    const signer = index < count ? wallet(`session key of ${by.address}`) : by
    return { by, side: index < 2 ? 'LONG' : 'SHORT', fill: 10, salt, signer }
  })
  return gasOf(settle(exchange, { price: PRICE, fills }))
}

/** The first session key of a batch also pays for the cold access to the account manager. */
async function furtherSessionKey(exchange: Exchange): Promise<Gas> {
  for (const maker of [ALICE, CAROL]) {
    const key = wallet(`session key of ${maker.address}`)
    const keys = exchange.keys.connect(await caller(exchange, maker))
    await (await keys.registerSessionKey(key.address, 1)).wait()
  }
  await withSessionKeys(exchange, 0, 1_001n)
  const one = await withSessionKeys(exchange, 1, 1_002n)
  return gasAbove(await withSessionKeys(exchange, 2, 1_003n), one)
}

/** Bought at 50,000 with 5 %: liquidatable by the book at 48,750, by the backstop at 48,400. */
async function fallen(exchange: Exchange): Promise<void> {
  await settle(exchange, { price: PRICE, fills: pair(CAROL, DAVE, 1_000, { leverage: 20, salt: 1_001n }) })
}

async function forced(exchange: Exchange): Promise<Gas> {
  await fallen(exchange)
  const price = 488_000
  const buyer: FillInput = { by: ALICE, side: 'LONG', fill: 500, salt: 1_004n }
  const sold = { side: 'SHORT' as const, fill: 500 }
  const fills = [buyer, { by: CAROL, ...sold, forced: 1n }]
  return gasOf(settle(exchange, { price, oraclePrice: e18('48750'), fills }), 2)
}

async function inherited(exchange: Exchange): Promise<Gas> {
  await withBackstop(exchange, e18('1000000000'), e18('100000'))
  await fallen(exchange)
  // The second inheritance finds the backstop's slot in use.
  await gasOf(inherit(exchange, CAROL, { price: e18('48400') }))
  await settle(exchange, {
    price: 484_000,
    fills: pair(CAROL, BOB, 1_000, { leverage: 20, salt: 1_009n }),
  })
  return gasOf(inherit(exchange, CAROL, { price: e18('46800') }))
}

async function deleveraged(exchange: Exchange): Promise<Gas> {
  const fills: FillInput[] = [
    { by: CAROL, side: 'LONG', fill: 1_000, leverage: 20, salt: 1_005n },
    { by: DAVE, side: 'SHORT', fill: 600, leverage: 20, salt: 1_005n },
    { by: BOB, side: 'SHORT', fill: 400, leverage: 20, salt: 1_005n },
  ]
  await settle(exchange, { price: PRICE, fills })
  const legs = [DAVE, BOB].map((of) => ({ of, steps: 300 }))
  const [first, second] = legs as [(typeof legs)[0], (typeof legs)[0]]
  const price = e18('47000')
  const one = await gasOf(deleverage(exchange, CAROL, [first], { price }))
  const two = await gasOf(deleverage(exchange, CAROL, [first, second], { price }))
  return gasAbove(two, one)
}

export const GAS_SCENARIOS: readonly GasScenario[] = [
  {
    name: 'cancel of one salt',
    measure: async (exchange) =>
      gasOf(exchange.trader.connect(await caller(exchange, ALICE)).cancelSalts([1_001])),
  },
  {
    name: 'partial fill, slot in use: above a whole one',
    measure: (exchange) => extra(exchange, { quantity: 30, slot: 3 }),
  },
  {
    name: 'partial fill, fresh slot: above a whole one',
    measure: (exchange) => extra(exchange, { quantity: 30, slot: 9 }),
  },
  { name: 'session key: above the own signature', measure: furtherSessionKey },
  { name: 'batch of two with a forced fill, per order', measure: forced },
  { name: 'inherit a position', measure: inherited },
  { name: 'deleverage, per further counterparty', measure: deleveraged },
]

export async function measureScenarios(
  fresh: (fixture: () => Promise<Exchange>) => Promise<Exchange>,
): Promise<GasTable> {
  const table: GasTable = {}
  for (const { name, measure } of GAS_SCENARIOS) {
    const exchange = await fresh(perpetualExchange)
    await warmUp(exchange)
    table[name] = await measure(exchange)
  }
  return table
}
