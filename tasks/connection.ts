/** The network connection of a task, and the accounts that it can use. */
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'

export async function connect(hre: HardhatRuntimeEnvironment) {
  const connection = await hre.network.create()
  // A network with a key has one account; a local node has several, which may hold different roles.
  const signers = await connection.ethers.getSigners()
  const [signer] = signers
  if (signer === undefined)
    throw new Error('the network has no account: configure its key (docs/deploy/README.md)')
  const { chainId } = await connection.ethers.provider.getNetwork()
  return { connection, signer, signers, provider: connection.ethers.provider, chainId }
}
