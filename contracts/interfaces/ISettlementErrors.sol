// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketMode} from "../types/Market.sol";

/**
 * @title Errors of settlement
 * @notice The first arguments of an order's error are its maker and salt; the first argument of an account's error is the
 * account. The keeper cancels exactly that order. The other errors concern the whole part and name no culprit.
 */
interface ISettlementErrors {
    // ------------------------------------------------------------------ the part

    /// @notice The codec version is not the one this contract reads, or a reserved bit of the header is set.
    error HeaderInvalid();
    error PartLengthWrong(uint256 expected, uint256 given);
    error EmptyPart();
    error PartTooLarge(uint256 allowed, uint256 given);
    error ActionOutOfOrder(uint256 expected, uint256 given);
    error AsOfDecreased(uint256 last, uint256 given);
    /// @notice `asOf` lies more than two seconds ahead of block time.
    error AsOfAhead(uint256 blockTime, uint256 given);
    /// @notice Block time > `asOf` + ACTION_LIFETIME: the action can never settle.
    error AsOfStale(uint256 blockTime, uint256 given);
    /// @notice The batch number is lower than the last one, 0, or above `asOf`.
    error BatchOutOfOrder(uint256 last, uint256 given);
    error PartOutOfOrder(uint256 expected, uint256 given);
    /// @notice A later part has another price, `asOf`, number of parts or report than the first part.
    error BatchTermsChanged(uint256 batchId);
    /// @notice The mode does not allow this kind of action.
    error MarketNotOpen(MarketMode mode);
    error PriceOffBand(uint256 lowest, uint256 highest, uint256 given);
    error FeeAboveSchedule(uint256 allowed, uint256 given);
    error Unbalanced(uint256 bought, uint256 sold);
    error TakerMismatch(uint256 matched, uint256 taker);

    // ------------------------------------------------------------------ the oracle report

    error ReportStale(uint256 asOf, uint256 observedAt, uint256 maxAge);
    error ReportAhead(uint256 asOf, uint256 observedAt);
    error ReportOlder(uint256 last, uint256 given);
    /// @notice Two reports with the same time and different prices.
    error ReportConflict(uint256 observedAt, uint256 last, uint256 given);
    error ReportMoveTooLarge(uint256 last, uint256 given, uint256 allowedMove);
    /// @notice A price is above 0; in a binary market from one tick to 1.
    error ReportPriceInvalid(uint256 price);

    // ------------------------------------------------------------------ an order

    error ReservedBits(address maker, uint256 salt);
    error ZeroFill(address maker, uint256 salt);
    error TakerAboveFill(address maker, uint256 salt, uint256 fill, uint256 taker);
    error LimitViolated(address maker, uint256 salt, uint256 limit, uint256 price);
    error TriggerEncoding(address maker, uint256 salt, uint256 condition, uint256 trigger);
    error LeverageOutOfRange(address maker, uint256 salt, uint256 allowed, uint256 leverage);
    error OrderExpired(address maker, uint256 salt, uint256 expiration, uint256 asOf);
    /// @notice High s value or zero signer.
    error SignatureInvalid(address maker, uint256 salt);
    error SignerUnauthorized(address maker, uint256 salt, address signer);
    error OrderDead(address maker, uint256 salt);
    error OrderCancelled(address maker, uint256 salt, uint256 requestedAt, uint256 asOf);
    /// @notice A market order can fill in one batch only.
    error MarketOrderStale(address maker, uint256 salt, uint256 firstBatch, uint256 batch);
    error Overfill(address maker, uint256 salt, uint256 remaining, uint256 fill);
    error PartialSlotMissing(address maker, uint256 salt);
    error PartialSlotMismatch(address maker, uint256 salt, uint256 slot);
    error ReduceOnlyExceeded(address maker, uint256 salt, uint256 available, uint256 fill);
    error ProceedsNegative(address maker, uint256 salt, int256 proceeds);
    error AmountOutOfRange(address maker, uint256 salt, int256 amount);

    // ------------------------------------------------------------------ a liquidation

    /// @notice A forced record has a non-zero field that must be zero, or its fill differs from its quantity.
    error ForcedEncoding(address account, uint256 number);

    // ------------------------------------------------------------------ an account

    error PositionOutOfRange(address account);
    /// @notice Both amounts are wei x 1e18, at the oracle price.
    error MarginInsufficient(address account, int256 required, int256 equity);
    /// @notice The account has no position, or its equity before the action meets the requirement. Wei x 1e18.
    error NotLiquidatable(address account, int256 equityX, int256 requiredX);
    /// @notice The account has equity left, and `asOf` comes before the end of the bank's last pause + PAUSE_GRACE.
    error LiquidationTooSoon(address account, uint256 graceEndsAt, uint256 asOf);
}
