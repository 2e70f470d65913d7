/**
 * What everything but plain settlement costs, one named scenario each. To add one: a name, and what it measures on a fresh
 * exchange of the fixture. The golden file and `npm run bench:gas` take it from here.
 */
import type { ContractTransactionResponse, Wallet } from 'ethers'
import {
  caller,
  type Exchange,
  type FillInput,
  pair,
  perpetualExchange,
  settle,
  wallet,
} from './exchange.ts'
import { e18 } from './markets.ts'
import { deleverage, inherit, withBackstop } from './risk.ts'

export interface GasScenario {
  readonly name: string
  readonly measure: (exchange: Exchange) => Promise<number>
}

const PRICE = 500_000
const [ALICE, BOB, CAROL, DAVE] = ['alice', 'bob', 'carol', 'dave'].map(wallet) as [
  Wallet,
  Wallet,
  Wallet,
  Wallet,
]

type Sent = Promise<ContractTransactionResponse> | ContractTransactionResponse
const gasOf = async (sent: Sent): Promise<number> => Number((await (await sent).wait())?.gasUsed)

/** Positions, words, slots and the market itself have been used before. */
async function warmUp(exchange: Exchange): Promise<void> {
  const used = pair(ALICE, BOB, 10, { salt: 1_000n, quantity: 20, slot: 3 })
  await settle(exchange, { price: PRICE, fills: [...used, ...pair(CAROL, DAVE, 10, { salt: 1_000n })] })
}

/** Of the same batch, with Alice’s order changed. */
async function extra(exchange: Exchange, change: Partial<FillInput>): Promise<number> {
  const fills = (salt: bigint): FillInput[] => [...pair(ALICE, BOB, 10, { salt })]
  const plain = await gasOf(settle(exchange, { price: PRICE, fills: fills(1_001n) }))
  const [first, second] = fills(1_002n)
  const changed = [{ ...(first as FillInput), ...change }, second as FillInput]
  return (await gasOf(settle(exchange, { price: PRICE, fills: changed }))) - plain
}

async function withSessionKey(exchange: Exchange): Promise<number> {
  const key = wallet('session key')
  const keys = exchange.keys.connect(await caller(exchange, ALICE))
  await (await keys.registerSessionKey(key.address, 1)).wait()
  return extra(exchange, { signer: key })
}

/** Bought at 50,000 with 5 %; at 48,750 the book may liquidate, at 48,400 the backstop may take over. */
async function fallen(exchange: Exchange): Promise<void> {
  await settle(exchange, { price: PRICE, fills: pair(CAROL, DAVE, 1_000, { leverage: 20, salt: 1_001n }) })
}

async function forced(exchange: Exchange): Promise<number> {
  await fallen(exchange)
  const price = 488_000
  const buyer: FillInput = { by: ALICE, side: 'LONG', fill: 500, salt: 1_004n }
  const sold = { side: 'SHORT' as const, fill: 500 }
  const fills = [buyer, { by: CAROL, ...sold, forced: 1n }]
  return Math.round((await gasOf(settle(exchange, { price, oraclePrice: e18('48750'), fills }))) / 2)
}

async function inherited(exchange: Exchange): Promise<number> {
  await withBackstop(exchange, e18('1000000000'), e18('100000'))
  await fallen(exchange)
  // The second time its slot is in use.
  await gasOf(inherit(exchange, CAROL, { price: e18('48400') }))
  await settle(exchange, {
    price: 484_000,
    fills: pair(CAROL, BOB, 1_000, { leverage: 20, salt: 1_009n }),
  })
  return gasOf(inherit(exchange, CAROL, { price: e18('46800') }))
}

async function deleveraged(exchange: Exchange): Promise<number> {
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
  return two - one
}

/** A balance at the bank that has been used, and tokens to pay in. */
async function banking(exchange: Exchange) {
  const alice = await caller(exchange, ALICE)
  await exchange.usdm.mint(ALICE.address, e18('1000'))
  await (await exchange.usdm.connect(alice).approve(exchange.spec.trader, 0)).wait()
  await (await exchange.usdm.connect(alice).approve(await exchange.bank.getAddress(), e18('1000'))).wait()
  return exchange.bank.connect(alice)
}

async function withdrawn(exchange: Exchange): Promise<number> {
  const bank = await banking(exchange)
  await (await bank.requestWithdrawal(e18('5'))).wait()
  await exchange.connection.networkHelpers.time.increase(20)
  return gasOf(bank.withdraw())
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
  { name: 'session key: above the own signature', measure: withSessionKey },
  { name: 'batch of two with a forced fill, per order', measure: forced },
  { name: 'inherit a position', measure: inherited },
  { name: 'deleverage, per further counterparty', measure: deleveraged },
  { name: 'deposit', measure: async (exchange) => gasOf((await banking(exchange)).deposit(e18('5'))) },
  {
    name: 'request a withdrawal',
    measure: async (exchange) => gasOf((await banking(exchange)).requestWithdrawal(e18('5'))),
  },
  { name: 'withdraw', measure: withdrawn },
]

export async function measureScenarios(
  fresh: (fixture: () => Promise<Exchange>) => Promise<Exchange>,
): Promise<Record<string, number>> {
  const table: Record<string, number> = {}
  for (const { name, measure } of GAS_SCENARIOS) {
    const exchange = await fresh(perpetualExchange)
    await warmUp(exchange)
    table[name] = await measure(exchange)
  }
  return table
}
