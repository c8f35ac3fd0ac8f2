"""Which tests prove that what was once found in an attack is mended, one row for each finding.

docs/attacks.md tells for each row what happened before, and what happens now.
Most are attacks of this folder. What concerns processes and not requests is tested where they are supervised.
"""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs/attacks.md"
ROWS = {
    "overflowing shapes": (
        "attacks/test_guard.py::test_what_harms_triton_is_refused_before_it",
        "attacks/test_guard.py::test_twenty_crashing_requests_crash_nothing",
    ),
    "a supervisor that gives up": (
        "attacks/test_guard.py::test_twenty_crashing_requests_crash_nothing",
        "attacks/test_faults.py::test_seven_crashes_in_a_row_do_not_end_the_service",
        "serving/test_restarts.py::test_pauses_grow_to_five_minutes_and_no_further",
        "serving/test_supervisor.py::"
        "test_a_server_that_keeps_dying_is_started_again_after_longer_and_longer_pauses",
        "gateway/records/test_keeper.py::test_a_crash_loop_is_told_in_readiness_whether_or_not_somebody_answers",
    ),
    "deep JSON": ("attacks/test_requests.py::test_an_attack_ends_as_it_must_and_disturbs_nobody",),
    "long texts": (
        "serving/test_edges.py::test_texts_that_are_too_long_are_refused_by_name",
        "attacks/test_requests.py::test_an_attack_ends_as_it_must_and_disturbs_nobody",
        "attacks/test_requests.py::test_a_large_attack_ends_as_it_must_and_disturbs_nobody",
        "attacks/test_guard.py::test_what_is_large_is_refused_before_it",
    ),
    "Triton's error header": (
        "attacks/test_guard.py::test_errors_on_many_streams_with_triton_s_header_harm_nobody",
    ),
    "open administration": (
        "attacks/test_requests.py::test_an_attack_ends_as_it_must_and_disturbs_nobody",
        "attacks/test_guard.py::test_what_harms_triton_is_refused_before_it",
        "serving/test_closed.py::test_every_path_of_administration_is_refused",
        "serving/test_closed.py::test_every_call_of_administration_is_refused",
        "serving/test_ports.py::test_on_any_other_host_the_gateway_has_them_and_triton_stays_behind",
    ),
    "the prefix cache as an oracle": (
        "attacks/test_spying.py::test_a_guess_that_is_right_looks_like_one_that_is_wrong",
        "attacks/test_spying.py::test_a_picture_that_another_key_has_sent_is_new_to_this_one",
        "attacks/test_cache_timing.py::test_time_tells_of_others_only_where_the_cache_is_shared",
    ),
    "answers that vanish in a flood": (
        "attacks/test_floods.py::test_of_seven_hundred_at_once_each_is_answered_right_or_told_to_wait",
        "attacks/test_floods.py::test_of_two_thousand_over_http_and_as_many_over_grpc_none_is_lost",
    ),
    "starving others": (
        "attacks/test_requests.py::test_an_attack_ends_as_it_must_and_disturbs_nobody",
        "attacks/test_vanishing.py::test_whoever_goes_leaves_nothing_behind",
    ),
    "memory before limits": (
        "attacks/test_requests.py::test_a_large_attack_ends_as_it_must_and_disturbs_nobody",
        "attacks/test_guard.py::test_what_is_large_is_refused_before_it",
    ),
    "costly pictures": (
        "attacks/test_requests.py::test_an_attack_ends_as_it_must_and_disturbs_nobody",
        "intake/test_image_limits.py::test_a_few_bytes_that_claim_many_pixels_are_refused_by_cost",
        "loop/test_costly_pictures.py::"
        "test_a_cheap_picture_is_answered_while_costly_ones_would_keep_all_workers",
    ),
    "log floods": (
        "attacks/test_numbers.py::test_a_picture_whose_decoder_talks_does_not_fill_the_log",
        "attacks/test_faults.py::test_without_descriptors_the_log_is_not_flooded_and_answers_come_back",
    ),
    "orphans": (
        "serving/test_supervision.py::"
        "test_a_killed_supervisor_leaves_nobody_behind_and_the_next_one_starts_on_the_same_ports",
        "serving/test_runs.py::test_a_frozen_orphan_its_shared_memory_and_its_folder_are_cleared",
    ),
    "frozen processes": (
        "attacks/test_faults.py::test_a_process_that_is_frozen_is_replaced",
        "serving/test_supervision.py::test_a_frozen_stub_is_killed_and_replaced",
        "serving/test_gateway_process.py::test_who_is_frozen_is_killed_and_replaced_and_the_other_left_alone",
        "gateway/test_frozen.py::test_a_stopped_server_is_not_ready_and_a_continued_one_is",
    ),
    "a temperature next to nothing": (
        "attacks/test_numbers.py::test_a_temperature_next_to_nothing_is_greedy",
    ),
    "rolling restarts": (
        "serving/test_rolling_restart.py::test_a_rolling_restart_loses_no_request",
        "client/test_retries.py::test_what_was_not_begun_is_tried_again",
        "client/test_retries.py::test_a_server_that_ends_is_told_from_one_that_has_failed",
    ),
    "smaller ones": (
        "attacks/test_guard.py::test_over_http_a_request_that_cannot_be_is_refused_by_name",
        "attacks/test_guard.py::test_a_deadline_before_now_is_refused_over_grpc_too",
        "attacks/test_numbers.py::test_a_picture_of_floats_is_not_taken_for_black",
        "attacks/test_numbers.py::test_an_error_does_not_echo_what_is_long_or_moves_the_cursor",
        "attacks/test_numbers.py::test_a_number_beyond_its_type_is_refused_and_not_cut",
        "serving/test_supervisor.py::test_a_server_is_found_ready_where_it_listens",
        "serving/test_serve.py::test_a_machine_without_shared_memory_is_told_so",
        "attacks/test_floods.py::test_of_seven_hundred_at_once_each_is_answered_right_or_told_to_wait",
        "intake/test_checksums.py::test_a_flipped_bit_is_found_wherever_the_sum_is_recorded",
    ),
    "EXIF data that point to themselves": (
        "intake/test_exif.py::test_a_directory_that_points_to_itself_is_not_gone_through",
        "intake/test_exif.py::test_no_more_parts_are_looked_at_than_the_limit",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_every_finding_has_a_test_that_is_there(row: str) -> None:
    for named in ROWS[row]:
        file, _, name = named.partition("::")
        tree = ast.parse((TESTS / file).read_text())
        assert name in {it.name for it in tree.body if isinstance(it, ast.FunctionDef)}, named


def test_the_page_tells_of_every_finding_and_names_its_tests() -> None:
    lines = [line.split(" | ") for line in PAGE.read_text().splitlines() if re.match(r"\| \d\d? ", line)]
    assert [cells[0].partition(" ")[2].partition(" ")[2] for cells in lines] == [*ROWS]
    for cells, tests in zip(lines, ROWS.values(), strict=True):
        named = re.findall(r"`(test_\w+)`", cells[1])
        assert named and {*named} <= {test.partition("::")[2] for test in tests}
