// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Report} from "../types/Report.sol";
import {Poked, WindDown} from "../types/TraderState.sol";

/**
 * @title How a market ends
 * @notice At a final price, given by the oracle and settled by the operator; or, where the operator has been silent for a day
 * after somebody asked, by anyone. From then on price and funding index are fixed and nothing else happens in the market.
 * Deficits are counted for three days; then one haircut is fixed and claims are paid, in any order, to anyone's account by
 * anyone. Times are milliseconds.
 */
interface IMarketWindDown {
    /// @notice A sign of life: makes void what was requested before.
    event Heartbeat(uint48 heartbeatAt);
    /// @notice The operator's day runs from `requestedAt` on.
    event FreezeRequested(address indexed by, uint48 requestedAt);
    /// @notice The report from which a freeze will take its price, unless the market's own is newer.
    event PricePoked(uint96 price, uint48 observedAt);
    /// @notice The market has ended at this price, as of `asOf`.
    /// @param pool What the market held for its positions.
    event MarketFrozen(
        uint256 indexed actionId, uint48 asOf, uint96 price, uint48 observedAt, int96 fundingIndex, uint256 pool
    );
    /// @notice As `MarketFrozen`, at the final price.
    event MarketFinalized(
        uint256 indexed actionId, uint48 asOf, uint96 price, uint48 observedAt, int96 fundingIndex, uint256 pool
    );
    /// @notice The account owed `deficit`; it is counted, and its position is gone.
    event InsolvencyReported(address indexed account, uint256 deficit);
    /// @notice `amount` went from the market's own free balance into the pool.
    event DeficitCovered(uint256 amount);
    /// @notice Every claim is due `pool / owed` of its value.
    event HaircutFixed(uint256 pool, uint256 owed);
    /// @param value Of the position at the fixed price; 0 where only the rest of an earlier claim was paid.
    /// @param unpaid What the pool was short of and still owes.
    event Claimed(address indexed account, uint256 value, uint256 paid, uint256 unpaid);

    /// @notice The market has ended; its price is fixed.
    error MarketEnded(uint256 endedAt);
    error MarketNotEnded();
    /// @notice A request stands already and its time runs.
    error FreezeAlreadyRequested(uint256 requestedAt);
    error FreezeNotRequested();
    /// @notice The operator has given a sign of life after the request.
    error FreezeRequestVoid(uint256 requestedAt, uint256 aliveAt);
    error FreezeEarly(uint256 availableAfter);
    /// @notice A perpetual has no final price.
    error MarketWithoutExpiry();
    error FinalPriceInvalid(uint256 lowest, uint256 highest, uint256 price);
    error InsolvencyWindowOver(uint256 endedAt);
    error ClaimEarly(uint256 availableAfter);
    error NothingToClaim(address account);
    error AmountZero();

    // ------------------------------------------------------------------ signs of life

    /// @notice The operator is there, though nothing trades. Needs neither oracle nor order.
    function heartbeat() external;

    /// @notice Starts the operator's day. Any action or heartbeat after it makes it void.
    function requestFreeze() external;

    /// @notice Stores a newer report, which no action reads, so that a freeze finds a fresh price. Anyone; judged like the
    /// report of an action as of now, against the newest one known.
    function poke(Report calldata report) external;

    // ------------------------------------------------------------------ the end

    /// @notice Ends the market at the newest price known, however old, a day after a request that still stands. Anyone, at any
    /// moment after that: who wants a fresh price pokes before. An action of the market's queue.
    function freeze() external;

    /// @notice Ends a future or binary market in mode settling at its final price: a report of the feed
    /// `keccak256(feedId ++ "final")` within the market's bounds, binary exactly one of them. Operator only.
    function finalizeMarket(uint256 actionId, uint256 asOf, Report calldata report) external;

    // ------------------------------------------------------------------ after the end

    /// @notice Counts what these accounts owe. Anyone, for three days. Accounts that owe nothing, or nothing any more, are
    /// passed over.
    function reportInsolvent(address[] calldata accounts) external;

    /// @notice Adds to the pool what was deposited for the market itself (`IMarginBank.depositFor`): before the haircut is fixed,
    /// it raises everyone's share; after it, it pays what claims were short of. Anyone; what is beyond all that is due stays.
    /// @dev Out of no trader's free balance: a debit at once could undo what was matched in another market.
    function coverDeficit(uint96 amount) external;

    /// @notice Pays what the account is due into its free balance: its value at the fixed price, less the haircut, and what an
    /// earlier claim was short of. Never more than the pool has: the rest stays due.
    function claim(address account) external;

    // ------------------------------------------------------------------ views

    function windDown() external view returns (WindDown memory);
    function poked() external view returns (Poked memory);
    function unpaidClaim(address account) external view returns (uint256);
}
