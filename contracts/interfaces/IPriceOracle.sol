// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title A source of prices that a market can check but not choose
 * @notice The keeper names price and time; the oracle says whether they were reported. What a market may do with a report
 * (age, order, size of the move) is the market's business.
 */
interface IPriceOracle {
    error FeedUnknown(bytes32 feedId);
    error ProofLengthWrong(uint256 expected, uint256 given);
    /// @notice There is no change of this feed that still waits for its time.
    error NoChangePending(bytes32 feedId);

    /**
     * @notice Reverts unless `price` was reported for `feedId` at `observedAt`.
     * @dev Says nothing about now: a report that is right is right for ever, and who could sign it may have been replaced since.
     * The caller holds `observedAt` against a clock, from both sides.
     * @param price Price x 1e18; whether 0 means anything is the caller's business.
     * @param observedAt Milliseconds.
     * @param proof What this kind of oracle needs: signatures, a round number.
     */
    function verify(bytes32 feedId, uint256 price, uint256 observedAt, bytes calldata proof) external view;
}
