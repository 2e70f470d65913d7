/**
 * Chains with a test token as collateral, which any account can mint: the test network (also the local
 * stack), and test runners.
 */
const TEST_CHAINS: readonly number[] = [6343, 31_337]

/** Twin of `isTestChain` in contracts/libraries/DelayBoundsLib.sol. */
export const isTestChain = (chainId: number): boolean => TEST_CHAINS.includes(chainId)
