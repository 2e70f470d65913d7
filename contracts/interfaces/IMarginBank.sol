// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title Custody of the collateral token and the ledger over it
 * @notice Free balances per account and one pool per market. A market moves value between free balances and its own pool,
 * never more out of it than it holds. At all times
 * `sum of free + sum of pending + sum of pools + sum of fees = tokens held` (donations aside).
 *
 * Withdrawing takes two steps. What is requested leaves *free* at once, but still backs batches whose `asOf` is at most
 * the time of the request + CANCEL_GRACE; a debit takes free first, then pending. It is paid when no such batch can settle any
 * more: after the time of the request + CANCEL_GRACE + ACTION_LIFETIME. From then on no market can draw on it, whatever `asOf` it
 * passes. A second request restarts the clock for the whole amount.
 *
 * Listing a market lets its code pull free balances: it is the most dangerous act here. It is announced, waits for
 * `listingDelay` with nothing paused at its end, and lists exactly the code that was announced.
 *
 * A pause stops what moves tokens and what a market asks for. It ends by itself after three days, and another cannot begin
 * within thirty days of its beginning: nobody can keep an owner from his money for longer. For as long as one runs the bank holds
 * a wei, which it was given when it was deployed and its latch keeps at other times: `a pause runs => the bank has ether`, so
 * that who pays or is paid reads no slot for it.
 */
interface IMarginBank {
    struct Account {
        uint96 free;
        /// Requested for withdrawal and not yet paid.
        uint96 pending;
        /// Unix seconds of the latest request.
        uint64 requestedAt;
    }

    struct Market {
        uint112 pool;
        /// Fees charged and not yet collected.
        uint112 fees;
        /// Unix seconds from which it may settle: its listing, or the end of a pause. 0 if it is not listed.
        uint32 openFrom;
    }

    /// @notice A market that is to be listed.
    struct Announcement {
        bytes32 codeHash;
        /// Unix seconds: `listMarket` is open from the one to before the other.
        uint64 listableFrom;
        uint64 lapsesAt;
    }

    /// @notice Unix seconds, both 0 if there never was one.
    struct Pause {
        uint64 startedAt;
        uint64 endsAt;
    }

    /// @notice `amount` arrived from `payer` and is free for `account`.
    event Deposited(address indexed account, address indexed payer, uint256 amount);
    /// @notice `amount` left free; `pending` is all that waits now, since `requestedAt` (unix seconds).
    event WithdrawalRequested(address indexed account, uint256 amount, uint256 pending, uint64 requestedAt);
    /// @notice Everything that was pending, `amount`, has been paid to the account.
    event Withdrawn(address indexed account, uint256 amount);
    /// @notice May be listed with this code from `listableFrom` to before `lapsesAt` (unix seconds), whatever was announced of it
    /// before.
    event MarketAnnounced(address indexed market, bytes32 codeHash, uint64 listableFrom, uint64 lapsesAt);
    /// @notice The market cannot be listed any more, unless it is announced again.
    event AnnouncementWithdrawn(address indexed market);
    /// @notice From the time of this block on the market settles, for good; its announcement is used up.
    event MarketListed(address indexed market, bytes32 codeHash);
    /// @notice All of the market's uncollected fees became free for the treasury.
    event FeesCollected(address indexed market, address indexed treasury, uint256 amount);
    /// @notice Collected fees go to `treasury` from now on.
    event TreasuryChanged(address indexed previous, address indexed treasury);
    /// @notice Began with this block; every market's settlement is closed until `endsAt` (unix seconds).
    event Paused(uint64 endsAt);
    /// @notice The pause ended with this block.
    event Unpaused();

    error AmountZero();
    error AccountZero();
    error AmountTooLarge(uint256 amount);
    error FreeBalanceInsufficient(address account, uint256 available, uint256 asked);
    error NothingPending(address account);
    error WithdrawalEarly(address account, uint256 availableAfter);
    error MarketNotListed(address market);
    error MarketAlreadyListed(address market);
    /// @notice Nothing is there, or an account that delegates to code: it could delegate to other code tomorrow.
    error MarketWithoutCode(address market);
    error MarketNotAnnounced(address market);
    error ListingEarly(address market, uint256 listableFrom);
    error AnnouncementLapsed(address market, uint256 lapsedAt);
    error MarketCodeChanged(address market, bytes32 announced, bytes32 found);
    error CollateralWithoutCode(address collateral);
    /// @notice The transfer went through and nothing arrived.
    error NothingArrived(uint256 asked);
    /// @notice The bank was deployed without the wei that its latch is to keep.
    error LatchWithoutWei();
    /// @notice Ether comes to the bank from its latch alone.
    error SenderNotLatch(address sender);
    error BankPaused(uint256 endsAt);
    error BankNotPaused();
    error PauseTooSoon(uint256 earliest);
    error PoolInsufficient(address market, uint256 pool, uint256 asked);

    // ------------------------------------------------------------------ deposits

    /// @notice Credits the caller with what arrives of `amount`.
    function deposit(uint256 amount) external;

    /// @notice Credits `account` with what arrives of the caller's `amount`.
    function depositFor(address account, uint256 amount) external;

    /// @notice As `deposit`, with the token's permit. A permit that was already used does no harm if the allowance stands.
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    // ------------------------------------------------------------------ withdrawals

    function requestWithdrawal(uint256 amount) external;

    /// @notice Pays everything pending, in full or what settlements left of it.
    function withdraw() external;

    // ------------------------------------------------------------------ markets

    /// @notice Applies one part to the ledger. The market's pool takes the difference: `pool -= sum of deltas + fees`.
    /// Listed markets only.
    /// @param asOf Of the action, in milliseconds: decides whether pending withdrawals back it.
    /// @param fees Charged by this part.
    /// @param deltas One word per account: address (20 bytes), change of its free balance (int96).
    function settleDeltas(uint256 asOf, uint256 fees, bytes32[] calldata deltas) external;

    /// @notice Moves the fees of a market to the treasury's free balance. Anyone may call.
    function collectFees(address market) external;

    // ------------------------------------------------------------------ management

    /// @notice Records what `market` is and from when it may be listed; announcing again starts anew. Restricted.
    function announceMarket(address market) external;

    /// @notice Restricted.
    function withdrawAnnouncement(address market) external;

    /// @notice Lists an announced market for good: the same code, in time, and not while the bank is paused. Restricted.
    function listMarket(address market) external;

    /// @notice Stops deposits, payouts, settlement and listing for three days. Requests to withdraw go on. Restricted.
    function pause() external;

    /// @notice Ends a pause early. The next one does not come sooner for it. Restricted.
    function unpause() external;

    /// @notice Gives the latch the ether that a pause which ended by itself, or a stranger by force, left in the bank: until then
    /// payments look up whether the bank is paused. Anyone may call, not during a pause.
    function restoreLatch() external;

    /// @notice Where collected fees go from now on. Restricted.
    function setTreasury(address newTreasury) external;

    // ------------------------------------------------------------------ views

    function token() external view returns (address);
    function treasury() external view returns (address);
    function account(address owner) external view returns (Account memory);
    function market(address trader) external view returns (Market memory);
    /// @notice Every listed market, in order of listing.
    function markets() external view returns (address[] memory);
    function announcement(address trader) external view returns (Announcement memory);
    function lastPause() external view returns (Pause memory);
    function isPaused() external view returns (bool);

    /// @notice The `PauseLatch` of this bank.
    function pauseLatch() external view returns (address);

    /// @notice Seconds between announcement and listing.
    function listingDelay() external view returns (uint256);
}
