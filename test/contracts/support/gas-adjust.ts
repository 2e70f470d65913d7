/** Gas of funding updates and adjustments: of the operator's transaction. */
import type { ContractTransactionResponse, Wallet } from 'ethers'
import {
  caller,
  chain,
  type Exchange,
  pair,
  perpetualExchange,
  settle,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustLeverage, adjustMargin, setFunding } from './adjust.ts'
import { type GasTable, gasAbove, gasOf } from './gas-charge.ts'

const PRICE = 500_000
const ORACLE = e18('50000')
const [ALICE, BOB] = ['alice', 'bob'].map(wallet) as [Wallet, Wallet]

type Call = () => Promise<ContractTransactionResponse>

/** Alice has a position, and the storage of Alice's accounts is already in use. */
async function warmUp(exchange: Exchange): Promise<void> {
  for (const salt of [1n, 2n]) await settle(exchange, { price: PRICE, fills: pair(ALICE, BOB, 10, { salt }) })
  const keys = exchange.keys.connect(await caller(exchange, ALICE))
  await keys.registerSessionKey(wallet('a session key').address, 3)
}

/** Name => call, in order: each call starts from the state that the previous ones left. */
async function adjustmentsOf(exchange: Exchange): Promise<[string, Call][]> {
  const by = ALICE
  const amount = e18('10')
  const trader = exchange.trader.connect(await caller(exchange, ALICE))
  return [
    ['adjust margin, fresh nonce word', () => adjustMargin(exchange, { by, nonce: 1n, amount })],
    ['adjust margin, added', () => adjustMargin(exchange, { by, nonce: 2n, amount })],
    ['adjust margin, removed', () => adjustMargin(exchange, { by, nonce: 3n, amount: -amount })],
    ['adjust leverage', () => adjustLeverage(exchange, { by, nonce: 4n, leverage: 4 })],
    [
      'adjust margin, by a session key',
      () => adjustMargin(exchange, { by, nonce: 5n, amount, signer: wallet('a session key') }),
    ],
    ['adjust margin, own report', () => adjustMargin(exchange, { by, nonce: 6n, amount, price: ORACLE })],
    ['invalidate margin nonces, first', () => trader.invalidateMarginNonces(7)],
    ['invalidate margin nonces', () => trader.invalidateMarginNonces(8)],
    ['adjust margin, above a floor', () => adjustMargin(exchange, { by, nonce: 9n, amount })],
  ]
}

/** A batch of two, with sequential salts and unused partial slots. */
const batch = (exchange: Exchange, salt: bigint): Call => {
  const fills = pair(ALICE, BOB, 10, { salt })
  return () => settle(exchange, { price: PRICE, fills })
}

async function funding(exchange: Exchange): Promise<GasTable> {
  const still = await gasOf(batch(exchange, 10n)())
  const first = await gasOf(setFunding(exchange, { price: ORACLE, rate: 3n }))
  const moving = await gasOf(batch(exchange, 11n)())
  const again = await gasOf(setFunding(exchange, { price: ORACLE, rate: 2n }))
  return {
    'update funding, first': first,
    'update funding': again,
    'a rate runs: above a batch': gasAbove(moving, still),
  }
}

export async function adjustmentGas(): Promise<GasTable> {
  const { networkHelpers } = await chain()
  const table: GasTable = {}
  const exchange = await networkHelpers.loadFixture(perpetualExchange)
  await warmUp(exchange)
  for (const [name, call] of await adjustmentsOf(exchange)) table[name] = await gasOf(call())
  return { ...table, ...(await funding(exchange)) }
}
