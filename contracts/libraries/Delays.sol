// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

// Milliseconds, like `asOf`.
// A cancel, a revocation or a withdrawal request binds batches with an `asOf` later than its effect + G, so that what was
// matched before it was seen can still be settled.
uint256 constant G = 5_000;
// An action is refused when block time is more than L past its `asOf`: a broadcast action is settled or provably dead.
uint256 constant L = 10_000;
// How far `asOf` may lie ahead of block time, and a report's time ahead of `asOf`.
uint256 constant AHEAD = 2_000;
// How long changed parameters, and the end of a market, are announced before they take over.
uint256 constant NOTICE = 86_400_000;
// How long the operator may be silent after a freeze request before anyone may freeze the market.
uint256 constant SILENCE = 86_400_000;
// How long deficits are counted after a market has ended.
uint256 constant INSOLVENCY_WINDOW = 259_200_000;

/// @notice Where nothing is at stake: MegaETH's test network, which the local stack stands for as well, and test runners. Delays
/// may be shorter there than everywhere else.
function isTestChain() view returns (bool) {
    return block.chainid == 6343 || block.chainid == 31_337;
}
