/** Fixture of the adjustment tests: two open positions, and calls that are expected to succeed or to revert. */
import { expect } from 'chai'
import type { ContractTransactionResponse, Wallet } from 'ethers'
import { chain, type Exchange, perpetualExchange, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { trade } from './risk.ts'

export const alice = wallet('alice')
export const bob = wallet('bob')

/** 1 unit at 100 with leverage 5: 20 of margin, of which IMR requires 4.5 and the leverage 20. */
export const OPENING_TRADE = { steps: 1000, price: 1000, leverage: 5 }
export const AT_100 = e18('100')

/** Alice is long, Bob short. */
export async function openPositions(): Promise<Exchange> {
  const exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  await trade(exchange, alice, bob, OPENING_TRADE)
  return exchange
}

interface Given {
  readonly by: Wallet
  readonly price: bigint
}

/** Calls on the current test's exchange, by default for Alice with a report of 100. */
export function adjustmentCalls<Input extends object>(
  exchange: () => Exchange,
  send: (exchange: Exchange, input: Input & Given) => Promise<ContractTransactionResponse>,
) {
  type Asked = Omit<Input, keyof Given> & Partial<Given>
  const adjust = (input: Asked) =>
    send(exchange(), { by: alice, price: AT_100, ...input } as unknown as Input & Given)
  const refused = async (input: Asked, error: string, args?: readonly unknown[]): Promise<void> => {
    const assertion = expect(adjust(input)).to.be.revertedWithCustomError(exchange().trader, error)
    await (args ? assertion.withArgs(...args) : assertion)
  }
  return { adjust, refused }
}
