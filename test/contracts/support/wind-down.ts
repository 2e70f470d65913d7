/** Calls that wind down a market. Calls open to any account are sent from an account without a position. */
import type { ContractTransactionResponse, Wallet } from 'ethers'
import { caller, chain, type Exchange, wallet } from '../../support/exchange.ts'
import { actionOf, pass, SILENCE, tick } from './risk.ts'

/** The exchange of the current test. */
export interface Scene {
  exchange: Exchange
}

const stranger = wallet('frank')

export const fresh = async (fixture: () => Promise<Exchange>): Promise<Exchange> =>
  (await chain()).networkHelpers.loadFixture(fixture)

export const freeOf = async ({ exchange }: Scene, of: Wallet): Promise<bigint> =>
  (await exchange.bank.account(of.address)).free

/** The market, called from an account without a role or position. */
export const byAnyone = async ({ exchange }: Scene): Promise<Exchange['trader']> =>
  exchange.trader.connect(await caller(exchange, stranger))

/** Pokes a report from an unprivileged account, in the second of its observation. */
export async function poke(
  scene: Scene,
  price: bigint,
  change: { observedAt?: number; signers?: Wallet[] } = {},
): Promise<ContractTransactionResponse> {
  const { report } = await actionOf(scene.exchange, { price, ...change })
  await tick(scene.exchange)
  return (await byAnyone(scene)).poke(report)
}

/** Requests a freeze, waits for the day of silence and freezes. */
export async function freeze(scene: Scene): Promise<void> {
  const trader = await byAnyone(scene)
  await trader.requestFreeze()
  await pass(scene.exchange, SILENCE + 3)
  await trader.freeze()
}

/** Claims for the accounts with a position, in this order; returns the amount paid to each. */
export async function claimAll(scene: Scene, order: readonly Wallet[]): Promise<Map<string, bigint>> {
  const paid = new Map<string, bigint>()
  for (const each of order) {
    const before = await freeOf(scene, each)
    if ((await scene.exchange.trader.position(each.address)).size === 0n) continue
    await (await byAnyone(scene)).claim(each.address)
    paid.set(each.address, (await freeOf(scene, each)) - before)
  }
  return paid
}
