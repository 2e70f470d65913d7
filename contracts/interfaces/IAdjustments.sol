// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {AdjustLeverage, AdjustMargin} from "../types/Adjustment.sol";
import {Report} from "../types/Report.sol";

/**
 * @title Margin and leverage of a position, changed by its owner
 * @notice An adjustment is signed by the account, or by a session key of it with the permission, in the market's domain: 65 bytes
 * over the typed data, or 66 (the last one 01) over it as a personal message. Only the operator can carry it out, once, until
 * its deadline; the account can void it before by raising its lowest nonce.
 *
 * Adjustments take no action number. They are judged with funding settled up to their `asOf`, at the report handed in or the one
 * that the market used last, whichever is newer. Money moves between the account's free balance and its position alone; what
 * is pending for withdrawal is never touched. After a removal the ratio is IMR and 1 / leverage at least; profit that is not
 * realised is never paid out; a fully collateralised binary position stays so. Once a position is eligible for liquidation
 * only an addition that reaches IMR is taken.
 */
interface IAdjustments {
    // ------------------------------------------------------------------ events

    /// @notice `amount` moved from free to margin, if negative back. `foldedMargin` is the stored margin after it: margin +
    /// size x funding index. `asOf` in milliseconds.
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
    /// @notice No nonce below `newMinimum` can be used any more.
    event MarginNoncesInvalidated(address indexed account, uint256 newMinimum);

    // ------------------------------------------------------------------ errors: the signature

    error MarginNonceTooLarge(address account, uint256 nonce);
    error MarginNonceBelowMinimum(address account, uint256 minimum, uint256 nonce);
    error MarginNonceUsed(address account, uint256 nonce);
    error MarginNonceMinimumNotRaised(address account, uint256 minimum, uint256 given);
    /// @notice The deadline is unix seconds, `asOf` milliseconds.
    error DeadlinePassed(address account, uint256 deadline, uint256 asOf);
    /// @notice Neither 65 bytes nor 66 that end with 01, a high s value, or no signer at all.
    error AdjustmentSignatureInvalid(address account);
    error AdjusterUnauthorized(address account, address signer);

    // ------------------------------------------------------------------ errors: the change

    error NoPosition(address account);
    /// @notice An amount of 0, or a removal that could take nothing.
    error NothingMoves(address account);
    /// @notice 0 is exact, 1 up to; 1 is for removals only.
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
    /// @param report Of the market's price. All zero where the market's last one is fresh enough.
    function adjustMargin(uint256 asOf, AdjustMargin calldata adjustment, Report calldata report, bytes calldata signature)
        external;

    /// @notice Sets the leverage and brings equity to notional / leverage, rounded up, as far as there is margin. Operator only.
    /// @dev That always meets IMR: listing requires IMR <= 1 / maxLeverage. Without a position only the leverage is set.
    function adjustLeverage(
        uint256 asOf,
        AdjustLeverage calldata adjustment,
        Report calldata report,
        bytes calldata signature
    ) external;

    /// @notice Voids the caller's adjustments with a nonce below `newMinimum`, at once. Directly or through the forwarder.
    function invalidateMarginNonces(uint256 newMinimum) external;

    // ------------------------------------------------------------------ views

    /// @notice The EIP-712 digests that are signed.
    function hashMarginAdjustment(AdjustMargin calldata adjustment) external view returns (bytes32);
    function hashLeverageAdjustment(AdjustLeverage calldata adjustment) external view returns (bytes32);

    /// @notice Whether the nonce was used; not whether it is below the minimum.
    function isMarginNonceUsed(address account, uint256 nonce) external view returns (bool);
}
