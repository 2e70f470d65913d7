/** The network connection and signer of a task. */
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'

export async function connect(hre: HardhatRuntimeEnvironment) {
  const connection = await hre.network.create()
  const [signer] = await connection.ethers.getSigners()
  if (signer === undefined) throw new Error('the network has no account: configure its key (docs/deploy.md)')
  const { chainId } = await connection.ethers.provider.getNetwork()
  return { connection, signer, provider: connection.ethers.provider, chainId }
}
