/** Roles of the exchange, and what each may call. What is listed nowhere needs the admin. */
import type { BaseContract, Signer } from 'ethers'
import type { ExchangeAccess } from '../typechain-types/ExchangeAccess.ts'

/** Numbers as in contracts/types/Roles.sol; the admin is OpenZeppelin's. */
export const ROLES = { admin: 0n, listing: 1n, parameters: 2n, guardian: 3n, treasury: 4n } as const

export type Role = keyof typeof ROLES

export type Granted = Exclude<Role, 'admin'>
type Functions = Readonly<Partial<Record<Granted, readonly string[]>>>
export type Restricted =
  | 'MarginBank'
  | 'IsolatedTrader'
  | 'SignedPriceOracle'
  | 'AggregatorOracle'
  | 'Backstop'

const ORACLE = { parameters: ['setFeed'], guardian: ['cancelFeed'] } as const

/** Contract => role => its functions. */
export const FUNCTIONS: Readonly<Record<Restricted, Functions>> = {
  MarginBank: {
    listing: ['announceMarket', 'listMarket'],
    guardian: ['withdrawAnnouncement', 'pause', 'unpause'],
    treasury: ['setTreasury'],
  },
  IsolatedTrader: {
    parameters: ['proposeOperator', 'scheduleParameters', 'scheduleMode', 'setBackstop'],
    guardian: ['revokeOperator', 'cancelScheduledParameters', 'restrictMode'],
  },
  SignedPriceOracle: ORACLE,
  AggregatorOracle: ORACLE,
  Backstop: {
    treasury: ['setBacked', 'registerSessionKey', 'requestWithdrawal', 'withdraw'],
    guardian: ['revokeSessionKey'],
  },
}

/** Gives the functions of a contract to their roles. The signer is an admin without delay. */
export async function assignFunctions(
  access: ExchangeAccess,
  name: Restricted,
  target: BaseContract,
): Promise<void> {
  for (const [role, functions] of Object.entries(FUNCTIONS[name])) {
    const selectors = functions.map((each) => selectorOf(target, each))
    await (await access.setTargetFunctionRole(target, selectors, ROLES[role as Granted])).wait()
  }
}

function selectorOf(target: BaseContract, name: string): string {
  const fragment = target.interface.getFunction(name)
  if (fragment === null) throw new Error(`the contract has no function ${name}`)
  return fragment.selector
}

/** The signer, an admin, takes a role up himself, without delay. */
export async function takeRole(access: ExchangeAccess, role: Granted, signer: Signer): Promise<void> {
  await (await access.grantRole(ROLES[role], signer, 0)).wait()
  await (await access.acceptRole(ROLES[role])).wait()
}
