// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {PauseLatch} from "./PauseLatch.sol";
import {Restricted} from "./base/Restricted.sol";
import {IIsolatedTrader} from "./interfaces/IIsolatedTrader.sol";
import {IMarginBank} from "./interfaces/IMarginBank.sol";
import {DelayBoundsLib} from "./libraries/DelayBoundsLib.sol";
import {ACTION_LIFETIME, CANCEL_GRACE} from "./types/Durations.sol";
import {MarketMode} from "./types/Market.sol";

/// @title Custody of the collateral token and the ledger over it
contract MarginBank is IMarginBank, Restricted, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    // ------------------------------------------------------------------ types

    /// @dev An account in one slot, from the low bit: free 96 | pending 96 | requestedAt 64. A struct, so that the slot is
    /// computed once for read and write.
    struct Word {
        uint256 bits;
    }

    // ------------------------------------------------------------------ constants, immutables

    uint256 private constant FREE = type(uint96).max;
    /// @dev Most tokens of the bank after a deposit. All balances, pools and fees together are at most the bank's tokens, so no
    /// credit that a pool covers can exceed `FREE`.
    uint256 private constant MAX_TOKENS = 2 ** 94;
    uint256 private constant PAUSE = 3 days;
    /// @dev Minimum time between the starts of two pauses.
    uint256 private constant PAUSE_INTERVAL = 30 days;
    /// @dev Longer than a pause plus the withdrawal delay: users who object to a market have time to withdraw before its listing.
    uint256 private constant MIN_LISTING_DELAY = 7 days;
    uint256 private constant MAX_LISTING_DELAY = 60 days;
    /// @dev Time after the listing delay in which an announced market can be listed.
    uint256 private constant LISTING_WINDOW = 14 days;
    /// @dev Code prefix of an account that delegates to other code (EIP-7702). No contract's code starts with it.
    bytes3 private constant DELEGATION = 0xef0100;

    IERC20 private immutable _TOKEN;
    /// @dev Holds 1 wei while no pause is active; the bank's own balance is the pause flag (5 gas instead of an SLOAD).
    PauseLatch private immutable _LATCH;
    uint256 private immutable _LISTING_DELAY;

    // ------------------------------------------------------------------ storage

    mapping(address owner => Word) private _accounts;
    mapping(address trader => Market) private _markets;
    mapping(address trader => Announcement) private _announcements;
    address[] private _listed;
    Pause private _pause;

    /// @inheritdoc IMarginBank
    address public treasury;

    // ------------------------------------------------------------------ constructor

    constructor(address collateral, address access, address firstTreasury, uint256 delay) payable Restricted(access) {
        if (collateral.code.length == 0) revert CollateralWithoutCode(collateral);
        DelayBoundsLib.requireWithin(delay, MIN_LISTING_DELAY, MAX_LISTING_DELAY);
        // Forwards the whole balance: ether sent to this address before deployment would otherwise set the pause flag.
        if (address(this).balance == 0) revert LatchWithoutWei();
        _LATCH = new PauseLatch{value: address(this).balance}();
        _TOKEN = IERC20(collateral);
        _LISTING_DELAY = delay;
        _setTreasury(firstTreasury);
    }

    modifier whenNotPaused() {
        _requireNotPaused();
        _;
    }

    // ------------------------------------------------------------------ deposits

    /// @inheritdoc IMarginBank
    function deposit(uint256 amount) external whenNotPaused nonReentrant {
        _deposit(msg.sender, amount);
    }

    /// @inheritdoc IMarginBank
    function depositFor(address owner, uint256 amount) external whenNotPaused nonReentrant {
        _deposit(owner, amount);
    }

    /// @inheritdoc IMarginBank
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
        whenNotPaused
        nonReentrant
    {
        // Another account may have used the permit already. The transfer below reverts if the allowance is missing.
        try IERC20Permit(address(_TOKEN)).permit(msg.sender, address(this), amount, deadline, v, r, s) {} catch {}
        _deposit(msg.sender, amount);
    }

    function _deposit(address owner, uint256 amount) private {
        // Check: the account and the amount are not zero.
        if (owner == address(0)) revert AccountZero();
        if (amount == 0) revert AmountZero();

        // Interaction: the reentrancy guard covers the transfer until the credit is written.
        uint256 before = _TOKEN.balanceOf(address(this));
        _TOKEN.safeTransferFrom(msg.sender, address(this), amount);
        uint256 tokens = _TOKEN.balanceOf(address(this));
        uint256 received = tokens - before;

        // Effect: credit the amount received.
        if (received == 0) revert NothingArrived(amount);
        if (tokens > MAX_TOKENS) revert BankFull(owner, tokens, MAX_TOKENS);
        _credit(owner, received);
        emit Deposited(owner, msg.sender, received);
    }

    // ------------------------------------------------------------------ withdrawals

    /// @inheritdoc IMarginBank
    function requestWithdrawal(uint256 amount) external {
        Account memory entry = _unpack(_accounts[msg.sender].bits);
        // Check: the free balance covers it.
        if (amount == 0) revert AmountZero();
        if (amount > entry.free) revert FreeBalanceInsufficient(msg.sender, entry.free, amount);

        // Effect: the amount leaves free immediately; the clock restarts for the whole pending amount.
        entry.free -= uint96(amount);
        // Free and pending together are at most `MAX_TOKENS`.
        entry.pending += uint96(amount);
        entry.requestedAt = uint64(block.timestamp);
        _accounts[msg.sender].bits = _pack(entry);
        emit WithdrawalRequested(msg.sender, amount, entry.pending, entry.requestedAt);
    }

    /// @inheritdoc IMarginBank
    function withdraw() external whenNotPaused nonReentrant {
        Word storage place = _accounts[msg.sender];
        uint256 word = place.bits;
        uint256 amount = (word >> 96) & FREE;
        // Check: an amount is pending, and no batch that it backs can settle any more.
        if (amount == 0) revert NothingPending(msg.sender);
        uint256 availableAfter = _lastDraw(word >> 192);
        if (block.timestamp <= availableAfter) revert WithdrawalEarly(msg.sender, availableAfter);

        // Effect: debit before the transfer.
        place.bits = word & ~(FREE << 96);
        emit Withdrawn(msg.sender, amount);

        // Interaction: pay the owner.
        _TOKEN.safeTransfer(msg.sender, amount);
    }

    // ------------------------------------------------------------------ markets

    /// @inheritdoc IMarginBank
    function settleDeltas(uint256 asOf, uint256 fees, bytes32[] calldata deltas) external {
        Market memory entry = _markets[msg.sender];
        // Check: the caller is a listed market, and no pause is active.
        if (entry.openFrom == 0) revert MarketNotListed(msg.sender);
        _requireNotPaused();

        // Effect: apply the deltas to the accounts and the difference to the pool.
        int256 paidOut = int256(fees);
        unchecked { // U17
            uint256 next;
            assembly ("memory-safe") {
                next := deltas.offset
            }
            for (uint256 end = next + 32 * deltas.length; next != end; next += 32) {
                uint256 word;
                assembly ("memory-safe") {
                    word := calldataload(next)
                }
                int256 delta = int96(uint96(word));
                _move(address(uint160(word >> 96)), delta, asOf);
                paidOut += delta;
            }
        }
        int256 pool = int256(uint256(entry.pool)) - paidOut;
        if (pool < 0) revert PoolInsufficient(msg.sender, entry.pool, uint256(paidOut));
        entry.pool = _toUint112(uint256(pool));
        entry.fees = _toUint112(entry.fees + fees);
        _markets[msg.sender] = entry;
    }

    /// @dev A debit reduces free first, then pending, if the pending withdrawal still backs a batch as of `asOf`.
    function _move(address owner, int256 delta, uint256 asOf) private {
        Word storage place = _accounts[owner];
        uint256 word = place.bits;
        uint256 free = word & FREE;
        // Free is the low field of the word: adding a delta to the word changes free only.
        unchecked { // U18
            if (delta >= 0) {
                if (free + uint256(delta) > FREE) revert CreditTooLarge(owner, free + uint256(delta));
                place.bits = word + uint256(delta);
                return;
            }
            uint256 debit = uint256(-delta);
            place.bits = debit <= free ? word - debit : _drawPending(owner, word, debit, asOf);
        }
    }

    /// @dev Debits all of free, and the rest from pending. A pending amount that `withdraw` can pay is never debited, whatever
    /// `asOf` the market passes. A market that enforces ACTION_LIFETIME cannot reach it anyway.
    function _drawPending(address owner, uint256 word, uint256 debit, uint256 asOf) private view returns (uint256) {
        Account memory entry = _unpack(word);
        uint256 missing = debit - entry.free;
        bool backs = asOf <= uint256(entry.requestedAt) * 1000 + CANCEL_GRACE
            && block.timestamp <= _lastDraw(entry.requestedAt);
        uint256 backing = backs ? entry.pending : 0;
        if (missing > backing) revert FreeBalanceInsufficient(owner, entry.free + backing, debit);
        entry.free = 0;
        // `missing` <= pending.
        entry.pending -= uint96(missing);
        return _pack(entry);
    }

    /// @inheritdoc IMarginBank
    function collectFees(address trader) external {
        uint256 amount = _markets[trader].fees;
        if (amount == 0) revert AmountZero();
        _markets[trader].fees = 0;
        _credit(treasury, amount);
        emit FeesCollected(trader, treasury, amount);
    }

    // ------------------------------------------------------------------ management

    /// @inheritdoc IMarginBank
    function announceMarket(address trader) external restricted {
        if (_markets[trader].openFrom != 0) revert MarketAlreadyListed(trader);
        if (trader.code.length == 0 || bytes3(trader.code) == DELEGATION) revert MarketWithoutCode(trader);
        uint64 listableFrom = uint64(block.timestamp + _LISTING_DELAY);
        uint64 lapsesAt = listableFrom + uint64(LISTING_WINDOW);
        _announcements[trader] = Announcement(trader.codehash, listableFrom, lapsesAt);
        emit MarketAnnounced(trader, trader.codehash, listableFrom, lapsesAt);
    }

    /// @inheritdoc IMarginBank
    function withdrawAnnouncement(address trader) external restricted {
        _removeAnnouncement(trader);
        emit AnnouncementWithdrawn(trader);
    }

    /// @inheritdoc IMarginBank
    function listMarket(address trader) external restricted whenNotPaused {
        Announcement memory announced = _removeAnnouncement(trader);
        if (block.timestamp < announced.listableFrom) revert ListingEarly(trader, announced.listableFrom);
        if (block.timestamp >= announced.lapsesAt) revert AnnouncementLapsed(trader, announced.lapsesAt);
        if (trader.codehash != announced.codeHash) revert MarketCodeChanged(trader, announced.codeHash, trader.codehash);
        (MarketMode mode, uint256 operators) = IIsolatedTrader(trader).readiness();
        if (mode != MarketMode.Open || operators == 0) revert MarketNotReady(trader, mode, operators);
        _listed.push(trader);
        _markets[trader].openFrom = uint32(block.timestamp);
        emit MarketListed(trader, announced.codeHash);
    }

    function _removeAnnouncement(address trader) private returns (Announcement memory announced) {
        announced = _announcements[trader];
        if (announced.lapsesAt == 0) revert MarketNotAnnounced(trader);
        delete _announcements[trader];
    }

    /// @inheritdoc IMarginBank
    function pause() external restricted {
        uint256 startedAt = _pause.startedAt;
        if (startedAt != 0 && block.timestamp < startedAt + PAUSE_INTERVAL) revert PauseTooSoon(startedAt + PAUSE_INTERVAL);
        _pause = Pause({startedAt: uint64(block.timestamp), endsAt: uint64(block.timestamp + PAUSE)});
        if (address(this).balance == 0) _LATCH.release();
        emit Paused(uint64(block.timestamp + PAUSE));
    }

    /// @inheritdoc IMarginBank
    function unpause() external restricted {
        if (!isPaused()) revert BankNotPaused();
        _pause.endsAt = uint64(block.timestamp);
        _returnEther();
        emit Unpaused();
    }

    /// @inheritdoc IMarginBank
    function restoreLatch() external whenNotPaused {
        if (address(this).balance == 0) revert AmountZero();
        _returnEther();
    }

    /// @dev Sends the bank's ether to the latch. Must not run during a pause.
    function _returnEther() private {
        Address.sendValue(payable(address(_LATCH)), address(this).balance);
    }

    /// @notice Accepts ether from the latch only.
    receive() external payable {
        if (msg.sender != address(_LATCH)) revert SenderNotLatch(msg.sender);
    }

    function _requireNotPaused() private view {
        if (isPaused()) revert BankPaused(_pause.endsAt);
    }

    /// @inheritdoc IMarginBank
    function setTreasury(address newTreasury) external restricted {
        _setTreasury(newTreasury);
    }

    function _setTreasury(address newTreasury) private {
        if (newTreasury == address(0)) revert AccountZero();
        emit TreasuryChanged(treasury, newTreasury);
        treasury = newTreasury;
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IMarginBank
    function token() external view returns (address) {
        return address(_TOKEN);
    }

    /// @inheritdoc IMarginBank
    function account(address owner) external view returns (Account memory) {
        return _unpack(_accounts[owner].bits);
    }

    /// @inheritdoc IMarginBank
    function market(address trader) external view returns (Market memory) {
        return _markets[trader];
    }

    /// @inheritdoc IMarginBank
    function markets() external view returns (address[] memory) {
        return _listed;
    }

    /// @inheritdoc IMarginBank
    function announcement(address trader) external view returns (Announcement memory) {
        return _announcements[trader];
    }

    /// @inheritdoc IMarginBank
    function lastPause() external view returns (Pause memory) {
        return _pause;
    }

    /// @inheritdoc IMarginBank
    function isPaused() public view returns (bool) {
        // During a pause the balance is not zero. If it is not zero for another reason, the pause slot decides.
        return address(this).balance != 0 && block.timestamp < _pause.endsAt;
    }

    /// @inheritdoc IMarginBank
    function pauseLatch() external view returns (address) {
        return address(_LATCH);
    }

    /// @inheritdoc IMarginBank
    function listingDelay() external view returns (uint256) {
        return _LISTING_DELAY;
    }

    // ------------------------------------------------------------------ internals

    /// @dev Last second in which a batch that the pending amount backs can settle.
    function _lastDraw(uint256 requestedAt) private pure returns (uint256) {
        return requestedAt + (CANCEL_GRACE + ACTION_LIFETIME) / 1000;
    }

    function _credit(address owner, uint256 amount) private {
        Word storage place = _accounts[owner];
        uint256 word = place.bits;
        uint256 sum = (word & FREE) + amount;
        if (sum > FREE) revert CreditTooLarge(owner, sum);
        unchecked { // U19
            place.bits = word + amount;
        }
    }

    function _unpack(uint256 word) private pure returns (Account memory) {
        return Account({free: uint96(word), pending: uint96(word >> 96), requestedAt: uint64(word >> 192)});
    }

    function _pack(Account memory entry) private pure returns (uint256) {
        return uint256(entry.free) | (uint256(entry.pending) << 96) | (uint256(entry.requestedAt) << 192);
    }

    function _toUint112(uint256 amount) private pure returns (uint112) {
        if (amount > type(uint112).max) revert AmountTooLarge(amount);
        return uint112(amount);
    }
}
