// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketKind, MarketMode} from "../../../contracts/types/Market.sol";
import {Report} from "../../../contracts/types/Report.sol";
import {Leg, Listing, ExchangeFixture} from "./ExchangeFixture.sol";
import {holds, same, vm, within} from "./Vm.sol";

/**
 * @title Every call that concerns the end of a market, in any order and at the edges of every time
 * @notice Each step predicts from a model of its own whether the contract accepts the call.
 */
contract EndingHandler is ExchangeFixture {
    uint256 private constant DAY = 86_400_000;
    uint256 private constant WEEK = 7 * DAY;

    /// @notice The model: times in milliseconds, 0 for none.
    struct Model {
        uint256 expiresAt;
        uint256 settlingAt;
        uint256 window;
        uint256 reportedAt;
        uint256 observedAt;
        uint256 price;
        uint256 lastAsOf;
        uint256 heartbeatAt;
        uint256 requestedAt;
        bool ended;
    }

    Model internal _model;
    uint256 private _salts;

    /// @notice Accepted calls of each kind, for the check that a campaign reaches them.
    uint256 public batches;
    uint256 public reports;

    constructor(Listing memory listed) ExchangeFixture(listed) {
        vm.warp(EXPIRES_AT / 1000 - 4 days);
        _model.expiresAt = listed.kind == MarketKind.Perpetual ? 0 : EXPIRES_AT;
        _model.window = DAY;
        // A market that has never settled an action cannot be frozen on request.
        _batch(10_001 << 8);
    }

    function model() external view returns (Model memory) {
        return _model;
    }

    function closesAt() public view returns (uint256) {
        (uint256 expiry, uint256 settling) = (_model.expiresAt, _model.settlingAt);
        if (expiry == 0 || settling == 0) return expiry + settling;
        return expiry < settling ? expiry : settling;
    }

    function isClosed(uint256 time) public view returns (bool) {
        return closesAt() != 0 && time >= closesAt();
    }

    // ------------------------------------------------------------------ time

    /// @notice Advances by seconds or hours, or to the seconds around the next edge.
    function pass(uint256 seed) external {
        uint256 to = block.timestamp + within(seed >> 8, 0, seed & 1 == 0 ? 60 : 12 hours);
        uint256[4] memory edges = [closesAt(), _reportableUntil(), _model.requestedAt + DAY, _model.expiresAt - _noticeOf()];
        if (seed % 3 == 0) {
            uint256 edge = edges[(seed >> 4) % 4] / 1000 + within(seed >> 8, 0, 2);
            if (edge > 0) to = edge - 1;
        }
        if (to > block.timestamp) vm.warp(to);
    }

    function _noticeOf() private view returns (uint256) {
        return _model.expiresAt == 0 ? 0 : DAY;
    }

    function _reportableUntil() private view returns (uint256) {
        return _model.reportedAt == 0 ? closesAt() + WEEK : _model.reportedAt + _model.window;
    }

    function _now() private view returns (uint256) {
        return block.timestamp * 1000;
    }

    // ------------------------------------------------------------------ actions of the operator

    /// @notice A batch at any time that the chain accepts, often 1 ms around the close.
    function batch(uint256 seed) external {
        _batch(seed);
    }

    function _batch(uint256 seed) private {
        uint256 asOf = _now() - 10_001 + within(seed >> 8, 0, 12_002);
        if (seed % 2 == 1 && closesAt() != 0) asOf = closesAt() - 1 + within(seed >> 8, 0, 2);
        bool timely = asOf >= _model.lastAsOf && asOf <= _now() + 2_000 && _now() <= asOf + 10_000;
        bool expected = timely && !_model.ended && !isClosed(asOf);
        bytes memory part = _part(asOf);
        bool done = _try(address(trader), abi.encodeCall(trader.settleBatch, (part)));
        same("a batch settles exactly before the close", expected, done);
        if (!done) return;
        ++batches;
        _model.lastAsOf = asOf;
    }

    function _part(uint256 asOf) private returns (bytes memory) {
        Head memory head = _nextHead();
        (head.asOf, head.price) = (asOf, listing.start);
        head.oraclePrice = listing.start * listing.tick;
        Leg[] memory legs = new Leg[](2);
        for (uint256 i; i < 2; ++i) {
            legs[i] = Leg(i, i == 0, false, 1, i == 0 ? 1 : 0, 1, listing.start, 1, ++_salts, NO_SLOT, false);
        }
        return _encode(head, legs);
    }

    function heartbeat() external {
        bool done = _try(address(trader), abi.encodeCall(trader.heartbeat, ()));
        same("heartbeats until the end", !_model.ended, done);
        if (done) _model.heartbeatAt = _now();
    }

    // ------------------------------------------------------------------ changes of the parameters role

    function extendExpiry(uint256 seed) external {
        uint256 to = _model.expiresAt + within(seed, 0, 31) * DAY;
        bool once = _model.expiresAt == EXPIRES_AT;
        bool expected = once && !isClosed(_now()) && !_model.ended && _now() + DAY <= _model.expiresAt
            && to > _model.expiresAt && to <= _model.expiresAt + 30 * DAY;
        bool done = _try(address(trader), abi.encodeCall(trader.extendExpiry, (uint48(to))));
        same("the expiry is extended once, a day ahead", expected, done);
        if (done) _model.expiresAt = to;
    }

    function extendDisputeWindow(uint256 seed) external {
        uint256 to = within(seed, 0, 15) * DAY;
        bool open = _model.reportedAt == 0 || _now() <= _reportableUntil();
        bool expected = !_model.ended && _model.window == DAY && open && to > DAY && to <= 14 * DAY;
        bool done = _try(address(trader), abi.encodeCall(trader.extendDisputeWindow, (uint48(to))));
        same("the dispute window is extended once", expected, done);
        if (done) _model.window = to;
    }

    function schedule(uint256 seed) external {
        bool settles = seed % 3 != 0;
        uint256 notice = settles ? DAY : 5_001;
        uint256 at = _now() + notice - 1 + within(seed >> 8, 0, 2);
        bytes memory data =
            abi.encodeCall(trader.scheduleMode, (settles ? MarketMode.Settling : MarketMode.Open, uint48(at)));
        bool done = _try(address(trader), data);
        same("a close is announced a day ahead", !_model.ended && !isClosed(_now()) && at >= _now() + notice, done);
        if (done) _model.settlingAt = settles ? at : 0;
    }

    // ------------------------------------------------------------------ calls of any account

    function requestFreeze() external {
        uint256 aliveAt = _aliveAt();
        bool stands = _model.requestedAt != 0 && _model.requestedAt >= aliveAt;
        bool done = _tryAs(actor(3), abi.encodeCall(trader.requestFreeze, ()));
        same("a freeze is requested before the close", !_model.ended && !isClosed(_now()) && !stands, done);
        if (done) _model.requestedAt = _now() > aliveAt ? _now() : aliveAt;
    }

    function freeze() external {
        bool silent = _model.requestedAt != 0 && _aliveAt() <= _model.requestedAt && _now() > _model.requestedAt + DAY;
        bool unreported = _model.reportedAt == 0 && _now() > closesAt() + WEEK;
        bool expected = !_model.ended && (isClosed(_now()) ? unreported : silent);
        bool done = _tryAs(actor(3), abi.encodeCall(trader.freeze, ()));
        same("a market freezes in silence, or a week after its close", expected, done);
        if (done) _requireEnded(listing.start * listing.tick);
    }

    function _aliveAt() private view returns (uint256) {
        return _model.heartbeatAt > _model.lastAsOf ? _model.heartbeatAt : _model.lastAsOf;
    }

    /// @notice A final report observed at any time around the close, the last report or now.
    function report(uint256 seed) external {
        uint256[3] memory around = [closesAt(), _model.observedAt, _now() + 2_000];
        uint256 observedAt = around[seed % 3] + within(seed >> 8, 0, 2);
        observedAt = observedAt == 0 ? 0 : observedAt - 1;
        uint256 price = _finalPrice(seed >> 16);
        bool replaces = _model.reportedAt == 0
            || (_isPerpetual() ? _isNearer(price, observedAt) : observedAt > _model.observedAt);
        bool expected = !_model.ended && isClosed(_now()) && _now() <= _reportableUntil() && replaces
            && observedAt >= closesAt() && observedAt <= _now() + 2_000;
        bool done = _tryAs(actor(3), abi.encodeCall(trader.submitFinalReport, (_signed(price, observedAt))));
        same("a final report counts within its time", expected, done);
        if (!done) return;
        ++reports;
        if (_model.reportedAt == 0) _model.reportedAt = _now();
        (_model.observedAt, _model.price) = (observedAt, price);
    }

    function finalize() external {
        uint256 actionId = uint256(trader.clock().actionId) + 1;
        bool expected = !_model.ended && _model.reportedAt != 0 && _now() > _reportableUntil();
        bool done = _tryAs(actor(3), abi.encodeCall(trader.finalizeMarket, (actionId, _now())));
        same("a market is finalized after the dispute window", expected, done);
        if (done) _requireEnded(_model.price);
    }

    function _requireEnded(uint256 price) private {
        _model.ended = true;
        same("the market ends at the price", int256(price), int256(uint256(trader.windDown().price)));
    }

    /// @notice endingLiveness: whatever happened before, calls of any account end the market in bounded time, without the
    /// operator and without a role.
    function endWithoutOperator(bool reported) external {
        if (closesAt() == 0 || closesAt() > _now() + 30 * DAY) return;
        if (!isClosed(_now())) vm.warp(closesAt() / 1000 + 1);
        if (!_model.ended && _model.reportedAt == 0 && reported && _now() <= _reportableUntil()) {
            trader.submitFinalReport(_signed(_finalPrice(0), _now()));
            _model.reportedAt = _now();
        }
        if (!_model.ended) {
            if (_now() <= _reportableUntil()) vm.warp(_reportableUntil() / 1000 + 1);
            uint256 actionId = uint256(trader.clock().actionId) + 1;
            if (_model.reportedAt == 0) trader.freeze();
            else trader.finalizeMarket(actionId, _now());
        }
        vm.warp(block.timestamp + 3 days + 1);
        int256 price = int256(uint256(trader.windDown().price));
        for (uint256 i; i < 2; ++i) {
            (int256 equityX,) = trader.health(actor(i), uint256(price));
            if (equityX >= 1e18) trader.claim(actor(i));
        }
        holds("endingLiveness", trader.windDown().haircutFixed);
    }

    // ------------------------------------------------------------------ internals

    function _isPerpetual() private view returns (bool) {
        return listing.kind == MarketKind.Perpetual;
    }

    function _finalPrice(uint256 seed) private view returns (uint256) {
        if (_isPerpetual()) return listing.start * listing.tick;
        return listing.kind == MarketKind.BinaryFuture ? (seed % 2) * 1e18 : within(seed, 0, 1e24);
    }

    /// @dev Nearer to the close, or of the same moment with another price.
    function _isNearer(uint256 price, uint256 observedAt) private view returns (bool) {
        if (observedAt == _model.observedAt) return price != _model.price;
        return observedAt < _model.observedAt;
    }

    function _signed(uint256 price, uint256 observedAt) private view returns (Report memory signed) {
        (signed.price, signed.observedAt) = (uint96(price), uint48(observedAt));
        signed.proof = _reportOn(_isPerpetual() ? FEED : FINAL_FEED, price, observedAt);
    }

    function _tryAs(address caller, bytes memory data) private returns (bool done) {
        vm.prank(caller);
        return _try(address(trader), data);
    }

    function _try(address target, bytes memory data) private returns (bool done) {
        (done,) = target.call(data);
    }
}
