/** The roles of the exchange and the functions that each may call. A restricted function of no role needs the admin. */
import type { BaseContract, Signer } from 'ethers'
import type { ExchangeAccess } from '../typechain-types/ExchangeAccess.ts'

/** The numbers of contracts/types/Roles.sol. The admin is OpenZeppelin's ADMIN_ROLE. */
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

/** By contract, then by role: the functions that the role may call. */
export const FUNCTIONS: Readonly<Record<Restricted, Functions>> = {
  MarginBank: {
    listing: ['announceMarket', 'listMarket'],
    guardian: ['withdrawAnnouncement', 'pause', 'unpause'],
    treasury: ['setTreasury'],
  },
  IsolatedTrader: {
    parameters: [
      'proposeOperator',
      'scheduleParameters',
      'scheduleMode',
      'extendExpiry',
      'extendDisputeWindow',
      'setBackstop',
    ],
    guardian: ['revokeOperator', 'cancelScheduledParameters', 'restrictMode'],
  },
  SignedPriceOracle: ORACLE,
  AggregatorOracle: ORACLE,
  Backstop: {
    treasury: ['setBacked', 'registerSessionKey', 'requestWithdrawal', 'withdraw'],
    guardian: ['revokeSessionKey'],
  },
}

/** Assigns the functions of a contract to their roles. The signer must be an admin without execution delay. */
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
  if (fragment === null) throw new Error(`cannot assign ${name}: the contract has no such function`)
  return fragment.selector
}

/** Grants a role to the signer, who must be an admin without execution delay, and accepts it. */
export async function takeRole(access: ExchangeAccess, role: Granted, signer: Signer): Promise<void> {
  await (await access.grantRole(ROLES[role], signer, 0)).wait()
  await (await access.acceptRole(ROLES[role])).wait()
}
