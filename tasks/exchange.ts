/** Checks that run before `ignition deploy` sends its first transaction. */
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import { readParameters, requireDelays, requireOwnHolders } from '../ignition/handover.ts'
import { connect } from './connection.ts'

/** Throws if the parameters are incomplete, or if Ignition would wait for a confirmation that cannot be given. */
export async function requireDeployable(
  { parameters }: { readonly parameters?: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const { chainId } = await connect(hre)
  const path = parameters ?? ''
  const read = readParameters(path)
  requireDelays(read, path, chainId)
  requireOwnHolders(read, path, chainId)
  if (process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT !== undefined || process.stdin.isTTY) return
  throw new Error(
    'the deployment cannot be confirmed, because standard input is not a terminal: ' +
      'set HARDHAT_IGNITION_CONFIRM_DEPLOYMENT=false to deploy without confirmation',
  )
}
