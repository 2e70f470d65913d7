// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {AdjustLeverage, AdjustMargin} from "../types/Adjustment.sol";
import {Report} from "../types/Report.sol";

/**
 * @title Margin and leverage adjustments by the owner of a position
 * @notice The account, or a session key of it with permission 2, signs an adjustment in the market's domain: 65 bytes over the
 * typed data, or 66 bytes (the last one 01) over it as a personal message. Only the operator can execute it, once, until its
 * deadline. The account can invalidate it earlier by raising its minimum nonce.
 *
 * Adjustments have no action number. They are evaluated with funding accrued up to their `asOf`, at the newer of the passed
 * report and the market's last report. Money moves only between the account's free balance and its position; a pending
 * withdrawal is never used. After a removal the ratio >= max(IMR, 1 / leverage), unrealised profit is never paid out, and a fully
 * collateralised binary position remains so. A position that is eligible for liquidation accepts only an addition that reaches
 * IMR.
 */
interface IAdjustments {
    // ------------------------------------------------------------------ events

    /// @notice `amount` moved from the free balance to the margin; negative: from margin to free. `foldedMargin` is the stored
    /// margin afterwards: margin + size x funding index. `asOf` in milliseconds.
    event MarginAdjusted(
        address indexed account,
        address indexed signer,
        uint256 nonce,
        uint256 asOf,
        int256 amount,
        int256 foldedMargin
    );
    /// @notice As `MarginAdjusted`; `leverage` is a plain number.
    event LeverageAdjusted(
        address indexed account,
        address indexed signer,
        uint256 nonce,
        uint256 asOf,
        uint256 leverage,
        int256 amount,
        int256 foldedMargin
    );
    /// @notice Nonces below `newMinimum` are invalid.
    event MarginNoncesInvalidated(address indexed account, uint256 newMinimum);

    // ------------------------------------------------------------------ errors: the signature

    error MarginNonceTooLarge(address account, uint256 nonce);
    error MarginNonceBelowMinimum(address account, uint256 minimum, uint256 nonce);
    error MarginNonceUsed(address account, uint256 nonce);
    error MarginNonceMinimumNotRaised(address account, uint256 minimum, uint256 given);
    /// @notice The deadline is unix seconds, `asOf` milliseconds.
    error DeadlinePassed(address account, uint256 deadline, uint256 asOf);
    /// @notice The signature is neither 65 bytes nor 66 bytes that end with 01, or s is high, or it has no signer.
    error AdjustmentSignatureInvalid(address account);
    error AdjusterUnauthorized(address account, address signer);

    // ------------------------------------------------------------------ errors: the change

    error NoPosition(address account);
    /// @notice An amount of 0, or a removal while no margin is removable.
    error NothingMoves(address account);
    /// @notice Mode 0 is exact, mode 1 is up to the amount. Mode 1 is valid for removals only.
    error RemoveModeInvalid(address account, uint8 removeMode);
    error RemovalTooLarge(address account, uint256 maxRemovable, uint256 asked);
    error AmountBelowMinimum(address account, uint256 minAmount, uint256 moves);
    /// @notice The position is eligible for liquidation; `needed` brings it to IMR.
    error AdditionInsufficient(address account, uint256 needed, uint256 given);
    error LeverageInvalid(address account, uint256 maxLeverage, uint256 leverage);
    error MarginInTooLarge(address account, uint256 maxMarginIn, uint256 needed);
    error MarginOutTooSmall(address account, uint256 minMarginOut, uint256 available);

    // ------------------------------------------------------------------ adjustments

    /// @notice Moves margin between free balance and position. Operator only.
    /// @param asOf Milliseconds; at most 2 s ahead of block time and 10 s behind it.
    /// @param report Of the market's price; all zero to use the market's last report.
    function adjustMargin(uint256 asOf, AdjustMargin calldata adjustment, Report calldata report, bytes calldata signature)
        external;

    /// @notice Sets the leverage and brings equity to notional / leverage, rounded up. A removal is at most the position's
    /// margin. Operator only.
    /// @dev The result always meets IMR: listing requires IMR <= 1 / maxLeverage. Without a position only the leverage changes.
    function adjustLeverage(
        uint256 asOf,
        AdjustLeverage calldata adjustment,
        Report calldata report,
        bytes calldata signature
    ) external;

    /// @notice Invalidates the caller's adjustments with a nonce below `newMinimum`, immediately. Callable through the forwarder.
    function invalidateMarginNonces(uint256 newMinimum) external;

    // ------------------------------------------------------------------ views

    /// @notice The EIP-712 digest of a margin adjustment.
    function hashMarginAdjustment(AdjustMargin calldata adjustment) external view returns (bytes32);
    /// @notice The EIP-712 digest of a change of leverage.
    function hashLeverageAdjustment(AdjustLeverage calldata adjustment) external view returns (bytes32);

    /// @notice Whether the nonce was used. Does not compare it with the minimum.
    function isMarginNonceUsed(address account, uint256 nonce) external view returns (bool);
}
