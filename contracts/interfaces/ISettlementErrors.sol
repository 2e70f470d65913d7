// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketMode} from "../types/Market.sol";

/**
 * @title Why a settlement is refused
 * @notice An error of an order names its maker and salt first, an error of an account names the account first: the keeper
 * drops exactly that order. The others speak of the part as a whole and have no culprit.
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
    /// @notice The action is older than ACTION_LIFETIME: it can never be settled any more.
    error AsOfStale(uint256 blockTime, uint256 given);
    /// @notice Lower than the last batch's number, 0, or a number above `asOf`: a market can never run out of them.
    error BatchOutOfOrder(uint256 last, uint256 given);
    error PartOutOfOrder(uint256 expected, uint256 given);
    /// @notice A later part names another price, `asOf`, number of parts or report than the first one.
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
    /// @notice Two reports of one moment with different prices.
    error ReportConflict(uint256 observedAt, uint256 last, uint256 given);
    error ReportMoveTooLarge(uint256 last, uint256 given, uint256 allowedMove);
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
    /// @notice An order without a limit price lives in one batch only.
    error MarketOrderStale(address maker, uint256 salt, uint256 firstBatch, uint256 batch);
    error Overfill(address maker, uint256 salt, uint256 remaining, uint256 fill);
    error PartialSlotMissing(address maker, uint256 salt);
    error PartialSlotMismatch(address maker, uint256 salt, uint256 slot);
    error ReduceOnlyExceeded(address maker, uint256 salt, uint256 available, uint256 fill);
    error ProceedsNegative(address maker, uint256 salt, int256 proceeds);
    error AmountOutOfRange(address maker, uint256 salt, int256 amount);

    // ------------------------------------------------------------------ a liquidation

    /// @notice A forced record has a field that it must not have, or a fill that is not its quantity.
    error ForcedEncoding(address account, uint256 number);

    // ------------------------------------------------------------------ an account

    error PositionOutOfRange(address account);
    /// @notice Both amounts are wei x 1e18, at the oracle price.
    error MarginInsufficient(address account, int256 required, int256 equity);
    /// @notice There is no position, or its equity, before anything is done, meets the requirement below which it may be taken
    /// away. Wei x 1e18.
    error NotLiquidatable(address account, int256 equityX, int256 requiredX);
}
