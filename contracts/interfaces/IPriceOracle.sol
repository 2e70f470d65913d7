// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title Verification of price reports
 * @notice The keeper passes price and time, and the oracle verifies that they were reported. The market checks age, order and
 * price move of a report (`BandLib.checkReport`).
 */
interface IPriceOracle {
    error FeedUnknown(bytes32 feedId);
    /// @notice Observed before the oldest source or signers that the oracle still stores: `earliest` and later are valid.
    error ObservedTooEarly(bytes32 feedId, uint256 earliest, uint256 observedAt);
    error ProofLengthWrong(uint256 expected, uint256 given);
    /// @notice The feed has no scheduled change.
    error NoChangePending(bytes32 feedId);

    /**
     * @notice Reverts unless `price` was reported for `feedId` at `observedAt`.
     * @dev Independent of the current time: a valid report stays valid, even if its signers were replaced since, until they are
     * replaced again. The caller must check the age of `observedAt`.
     * @param price Price x 1e18; the caller decides whether 0 is valid.
     * @param observedAt Milliseconds.
     * @param proof Specific to the kind of oracle: signatures, or a round number.
     */
    function verify(bytes32 feedId, uint256 price, uint256 observedAt, bytes calldata proof) external view;
}
