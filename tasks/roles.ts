/** Tasks that hand the deployer's roles to their holders. Each can be repeated after an interruption. */
import type { Signer } from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import { contractOf, readDeployment } from '../ignition/deployment.ts'
import { readParameters, requireOwnHolders } from '../ignition/handover.ts'
import { ROLES, type Role } from '../stack/access.ts'
import type { ExchangeAccess } from '../typechain-types/ExchangeAccess.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { mined } from './chain.ts'
import { connect } from './connection.ts'
import { timeOfSeconds } from './print.ts'

interface HandOverArguments {
  readonly deploymentId: string
  readonly parameters: string
}

const accessOf = (deploymentId: string, signer: Signer): ExchangeAccess =>
  ExchangeAccess__factory.connect(contractOf(readDeployment(deploymentId), 'ExchangeAccess'), signer)

/**
 * Each run offers roles to their holders and renounces the deployer's role if the holder has accepted, the admin role last.
 * Run it again until it prints that all is handed over.
 */
export async function handOver(
  { deploymentId, parameters }: HandOverArguments,
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const { signer, chainId } = await connect(hre)
  const read = readParameters(parameters)
  requireOwnHolders(read, parameters, chainId)
  const { holders, exchange } = read
  const access = accessOf(deploymentId, signer)
  let waiting = 0
  for (const [role, id] of (Object.entries(ROLES) as [Role, bigint][]).reverse()) {
    const holder = holders[role]
    if (holder === signer.address) continue
    const [accepted] = await access.hasRole(id, holder)
    const [held] = await access.hasRole(id, signer.address)
    const isLast = role === 'admin' && waiting > 0
    if (accepted && held && !isLast) {
      await mined(`renouncing the role ${role}`, access.renounceRole(id, signer.address))
      console.log(`${role}: renounced by the deployer, held by ${holder}`)
    } else if (accepted) {
      const kept = held ? '; the deployer keeps it until the other roles are handed over' : ''
      console.log(`${role}: held by ${holder}${kept}`)
    } else {
      waiting += 1
      await offer(access, role, holder, role === 'guardian' ? 0 : exchange.roleDelay)
    }
  }
  console.log(waiting === 0 ? 'all is handed over' : 'run this again when the holders have accepted')
}

/** An open offer stays: an interrupted run must not spend the gas twice. */
async function offer(access: ExchangeAccess, role: Role, holder: string, delay: number): Promise<void> {
  const open = await access.offeredRole(ROLES[role], holder)
  const accept = `the holder accepts with \`accept-role --role ${role}\``
  if (open.expiresAt > 0n && Number(open.executionDelay) === delay) {
    console.log(`${role}: offered to ${holder} until ${timeOfSeconds(open.expiresAt)}; ${accept}`)
    return
  }
  await mined(`offering the role ${role} to ${holder}`, access.grantRole(ROLES[role], holder, delay))
  console.log(`${role}: offered to ${holder}; ${accept}`)
}

interface AcceptRoleArguments {
  readonly role: string
  readonly deploymentId: string
}

/** Accepts with the account of the network that the role was offered to. */
export async function acceptRole(
  { role, deploymentId }: AcceptRoleArguments,
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const { signer, signers } = await connect(hre)
  const id = ROLES[role as Role]
  if (id === undefined)
    throw new Error(
      `--role must be one of ${Object.keys(ROLES).join(', ')}; received ${role === '' ? 'nothing' : role}`,
    )
  const access = accessOf(deploymentId, signer)
  for (const each of signers) {
    if ((await access.offeredRole(id, each.address)).expiresAt === 0n) continue
    await mined(`accepting the role ${role} as ${each.address}`, access.connect(each).acceptRole(id))
    console.log(`${each.address} has the role ${role}`)
    return
  }
  // On a local node the first account is the deployer, who has every role.
  for (const { address } of signers.length === 1 ? signers : signers.slice(1)) {
    if (!(await access.hasRole(id, address))[0]) continue
    console.log(`${address} has the role ${role} already`)
    return
  }
  const accounts = signers.map(({ address }) => address).join(', ')
  throw new Error(
    `the role ${role} is not offered to ${accounts}: \`hand-over\` offers it to its holder, for a week`,
  )
}
