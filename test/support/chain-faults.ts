/** Faults of a local chain: forks, transactions of a relayer's key that the keeper has not signed, and time that passes at once. */
import { setTimeout } from 'node:timers/promises'
import { type JsonRpcProvider, Wallet } from 'ethers'

/** Lets the chain's time pass, and mines a block at the end. */
export async function passTime(
  { provider }: { readonly provider: JsonRpcProvider },
  ms: number,
): Promise<void> {
  await provider.send('evm_increaseTime', [Math.ceil(ms / 1000)])
  await provider.send('evm_mine', [])
}

/** Anvil mines a block each second. */
const BLOCK_MS = 1_000

/**
 * A block that anvil mines while it replaces blocks keeps its old number, and those before it are missing. Right after a block none is due.
 * Returns how many came.
 */
async function untilNewBlock(provider: JsonRpcProvider): Promise<number> {
  const before = await provider.getBlockNumber()
  const end = Date.now() + BLOCK_MS + 500
  for (;;) {
    const mined = (await provider.getBlockNumber()) - before
    if (mined > 0 || Date.now() > end) return mined
    await setTimeout(10)
  }
}

/** Replaces the last blocks. The first of the new ones contains the signed transactions. `aheadMs`: of the chain's time that `passTime` let pass. */
export async function replaceBlocks(
  provider: JsonRpcProvider,
  depth: number,
  transactions: readonly string[] = [],
  aheadMs = 0,
): Promise<void> {
  const mined = await untilNewBlock(provider)
  await provider.send('anvil_reorg', [depth + mined, transactions.map((raw) => [raw, 0])])
  // A fork takes the clock of anvil back. The validators of a real chain have clocks of their own.
  const { timestamp = 0 } = (await provider.getBlock('latest')) ?? {}
  const behind = Math.floor((Date.now() + aheadMs) / 1000) - timestamp
  if (behind > 0) await provider.send('evm_increaseTime', [behind])
  await provider.send('evm_mine', [])
}

/** Replaces the block and all after it by empty ones. `aheadMs`: see `replaceBlocks`. */
export async function replaceFrom(provider: JsonRpcProvider, block: number, aheadMs = 0): Promise<void> {
  const hashOf = async () => (await provider.getBlock(block))?.hash
  const removed = await hashOf()
  // A block that is mined after the depth is computed leaves the first one in the chain.
  while ((await hashOf()) === removed)
    await replaceBlocks(provider, (await provider.getBlockNumber()) - block + 1, [], aheadMs)
}

/** A signed transfer of the key with the first nonce that is unused at the block. */
export async function foreignTransfer(
  provider: JsonRpcProvider,
  key: string,
  block: number | 'latest' = 'latest',
): Promise<string> {
  const wallet = new Wallet(key)
  const { chainId } = await provider.getNetwork()
  const nonce = await provider.getTransactionCount(wallet.address, block)
  const fees = { maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1n }
  const transfer = { to: wallet.address, value: 1n, gasLimit: 21_000n, type: 2, nonce, chainId }
  return wallet.signTransaction({ ...transfer, ...fees })
}
