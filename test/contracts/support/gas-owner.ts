/** Gas of owners' own calls, sent directly or through the forwarder. */
import type { ContractTransactionResponse } from 'ethers'
import { caller, chain, type Exchange, perpetualExchange, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { forwarderOf, signForward } from './forward.ts'
import { type GasTable, gasOf } from './gas-charge.ts'

const AMOUNT = e18('100')
const SALTS = Array.from({ length: 20 }, (_, index) => 200 + index)

/** Name => call, in order: each call starts from the state that the previous ones left. */
async function callsOf(exchange: Exchange): Promise<[string, () => Promise<ContractTransactionResponse>][]> {
  const { usdm, shared, spec, users, connection } = exchange
  const owner = await caller(exchange, users[0]!)
  const fresh = await caller(exchange, wallet('never seen before'))
  for (const each of [owner, fresh]) {
    await usdm.mint(each.address, AMOUNT * 10n)
    // The new account approves exactly its deposit; the other has a standing allowance.
    await usdm.connect(each).approve(shared.marginBank, each === fresh ? AMOUNT : AMOUNT * 10n)
  }
  const bank = exchange.bank.connect(owner)
  const keys = exchange.keys.connect(owner)
  const trader = exchange.trader.connect(owner)
  const key = wallet('a session key').address
  /** After the delay of an earlier request. */
  const later = async <Answer>(call: () => Promise<Answer>) => {
    await connection.networkHelpers.time.increase(16)
    return call()
  }
  const relay = async (to: string, data: string) =>
    forwarderOf(exchange).execute(await signForward(exchange, users[0]!, { to, data }))
  return [
    ['deposit, first', () => exchange.bank.connect(fresh).deposit(AMOUNT)],
    ['deposit', () => bank.deposit(AMOUNT)],
    ['request withdrawal', () => bank.requestWithdrawal(AMOUNT)],
    ['withdraw', () => later(() => bank.withdraw())],
    [
      'register session key, relayed',
      () => relay(shared.accountManager, keys.interface.encodeFunctionData('registerSessionKey', [key, 3])),
    ],
    [
      'revoke session key, relayed',
      () => relay(shared.accountManager, keys.interface.encodeFunctionData('revokeSessionKey', [key])),
    ],
    ['cancel, first', () => trader.cancelSalts([1])],
    ['cancel', () => later(() => trader.cancelSalts([2]))],
    ['cancel, relayed', () => relay(spec.trader, trader.interface.encodeFunctionData('cancelSalts', [[3]]))],
    ['cancel of 20', () => trader.cancelSalts(SALTS)],
    ['cancel below a floor', () => trader.cancelSaltsBelow(1_000)],
    [
      'deposit, while the bank has ether',
      async () => {
        // Forced by a contract that self-destructs in its constructor.
        await owner.sendTransaction({ data: `0x73${shared.marginBank.slice(2)}ff`, value: 1n })
        return bank.deposit(AMOUNT)
      },
    ],
  ]
}

export async function ownerGas(): Promise<GasTable> {
  const { networkHelpers } = await chain()
  const table: GasTable = {}
  for (const [name, call] of await callsOf(await networkHelpers.loadFixture(perpetualExchange))) {
    table[name] = await gasOf(call())
  }
  return table
}
