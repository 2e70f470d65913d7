/** Calls that wind down a market. Calls open to any account are sent from an account without a position. */
import type { ContractTransactionResponse, Wallet } from 'ethers'
import { caller, chain, type Exchange, wallet } from '../../support/exchange.ts'
import { actionOf, pass, SILENCE, tick } from './risk.ts'

/** The exchange of the current test. */
export interface CurrentExchange {
  exchange: Exchange
}

const unprivileged = wallet('frank')

export const fresh = async (fixture: () => Promise<Exchange>): Promise<Exchange> =>
  (await chain()).networkHelpers.loadFixture(fixture)

export const freeOf = async ({ exchange }: CurrentExchange, of: Wallet): Promise<bigint> =>
  (await exchange.bank.account(of.address)).free

/** The market, called from an account without a role or position. */
export const asAnyAccount = async ({ exchange }: CurrentExchange): Promise<Exchange['trader']> =>
  exchange.trader.connect(await caller(exchange, unprivileged))

/** Pokes a report from an unprivileged account, in the second of its observation. */
export async function poke(
  current: CurrentExchange,
  price: bigint,
  change: { observedAt?: number; signers?: Wallet[] } = {},
): Promise<ContractTransactionResponse> {
  const { report } = await actionOf(current.exchange, { price, ...change })
  await tick(current.exchange)
  return (await asAnyAccount(current)).poke(report)
}

/** Requests a freeze, waits for the day of silence and freezes. */
export async function freeze(current: CurrentExchange): Promise<void> {
  const trader = await asAnyAccount(current)
  await trader.requestFreeze()
  await pass(current.exchange, SILENCE + 3)
  await trader.freeze()
}

/** Claims for the accounts with a position, in this order; returns the amount paid to each. */
export async function claimAll(
  current: CurrentExchange,
  order: readonly Wallet[],
): Promise<Map<string, bigint>> {
  const paid = new Map<string, bigint>()
  for (const each of order) {
    const before = await freeOf(current, each)
    if ((await current.exchange.trader.position(each.address)).size === 0n) continue
    await (await asAnyAccount(current)).claim(each.address)
    paid.set(each.address, (await freeOf(current, each)) - before)
  }
  return paid
}
