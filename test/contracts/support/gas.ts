/** Gas per settled order: gas of a part over its orders, one order per account, non-zero expiry and fees. Includes the named scenarios. */
import type { Wallet } from 'ethers'
import { chain, crowdedExchange, type Exchange, type FillInput, settle } from '../../support/exchange.ts'
import { adjustmentGas } from './gas-adjust.ts'
import { type GasTable, gasOf } from './gas-charge.ts'
import { ownerGas } from './gas-owner.ts'
import { riskGas } from './gas-risk.ts'
import { measureScenarios } from './gas-scenarios.ts'

export const SIZES = [2, 20, 50, 100] as const
export const SALTS = ['sequential', 'random'] as const
export const MOVES = ['opening', 'growing', 'reducing'] as const

const PRICE = 500_000
const STEPS = 1_000

/** An odd number without zero bytes: its multiples are spread over all 53-bit salts. */
const SPREAD = 0x1e3779b97f4a7dn
const SALT_END = 1n << 53n

/** Sequential: adjacent salts in one word. Random: a new word for every order. */
const saltOf = (mode: (typeof SALTS)[number], move: number): bigint =>
  mode === 'sequential' ? BigInt(1 + move) : (BigInt(1 + move) * SPREAD) % SALT_END

function fillsOf(users: readonly Wallet[], mode: (typeof SALTS)[number], move: number): FillInput[] {
  return users.map((by, index) => {
    const buys = (index % 2 === 0) !== (move === MOVES.indexOf('reducing'))
    const taker = buys ? STEPS : 0
    return { by, side: buys ? 'LONG' : 'SHORT', fill: STEPS, taker, salt: saltOf(mode, move) }
  })
}

/** Sequential salts share a word that the account has used before; here a cancel uses it. */
async function useWords(exchange: Exchange, users: readonly Wallet[]): Promise<void> {
  const { connection, trader } = exchange
  for (const user of users) {
    await connection.networkHelpers.setBalance(user.address, 10n ** 18n)
    await trader.connect(user.connect(connection.ethers.provider)).cancelSalts([0])
  }
}

async function measure(exchange: Exchange, size: number, mode: (typeof SALTS)[number]): Promise<GasTable> {
  const users = exchange.users.slice(0, size)
  const table: GasTable = {}
  // The storage of the market and its pool is already in use.
  await settle(exchange, { price: PRICE, fills: fillsOf(exchange.users.slice(100, 102), 'random', 5) })
  if (mode === 'sequential') await useWords(exchange, users)
  for (const [index, move] of MOVES.entries()) {
    const sent = settle(exchange, { price: PRICE, fills: fillsOf(users, mode, index) })
    table[`${mode} ${size} ${move}`] = await gasOf(sent, size)
  }
  return table
}

const crowd = (): Promise<Exchange> => crowdedExchange(102)

/** All measurements. For example `sequential 50 growing` => gas per order. */
export async function gasTable(): Promise<GasTable> {
  const { networkHelpers } = await chain()
  const table: GasTable = {}
  for (const mode of SALTS) {
    for (const size of SIZES)
      Object.assign(table, await measure(await networkHelpers.loadFixture(crowd), size, mode))
  }
  const scenarios = await measureScenarios((fixture) => networkHelpers.loadFixture(fixture))
  const others = [await riskGas(), await ownerGas(), await adjustmentGas()]
  return Object.assign(table, scenarios, ...others)
}
