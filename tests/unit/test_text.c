/* SPDX-License-Identifier: Apache-2.0 */
/* Interned texts, growing arrays, UTF-8. */
#include "build.h"
#include "lib/text.h"

static void equal_texts_have_equal_numbers(void **state)
{
    struct gtopo_texts texts;
    uint32_t a, b, c;

    (void)state;
    assert_int_equal(gtopo_texts_init(&texts), 0);
    assert_int_equal(gtopo_texts_add(&texts, "mlx5_0", &a), 0);
    assert_int_equal(gtopo_texts_add(&texts, "mlx5_1", &b), 0);
    assert_int_equal(gtopo_texts_add(&texts, "mlx5_0", &c), 0);
    assert_int_equal(a, c);
    assert_int_not_equal(a, b);
    assert_string_equal(gtopo_texts_get(&texts, b), "mlx5_1");
    gtopo_texts_clear(&texts);
}

static void the_empty_text_is_number_zero(void **state)
{
    struct gtopo_texts texts;
    uint32_t number = 7;

    (void)state;
    assert_int_equal(gtopo_texts_init(&texts), 0);
    assert_int_equal(gtopo_texts_add(&texts, "", &number), 0);
    assert_int_equal(number, 0);
    assert_string_equal(gtopo_texts_get(&texts, 0), "");
    assert_int_equal(gtopo_texts_find(&texts, ""), 0);
    gtopo_texts_clear(&texts);
}

static void many_texts_are_found_again(void **state)
{
    struct gtopo_texts texts;
    char text[32];
    uint32_t numbers[5000];

    (void)state;
    assert_int_equal(gtopo_texts_init(&texts), 0);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "text %d", i);
        assert_int_equal(gtopo_texts_add(&texts, text, &numbers[i]), 0);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "text %d", i);
        assert_int_equal(gtopo_texts_find(&texts, text), numbers[i]);
        assert_string_equal(gtopo_texts_get(&texts, numbers[i]), text);
    }
    assert_int_equal(gtopo_texts_find(&texts, "text 5000"), UINT32_MAX);
    gtopo_texts_clear(&texts);
}

/* The caller may hand in a part of what it was given. */
static void a_part_of_a_stored_text_can_be_stored(void **state)
{
    struct gtopo_texts texts;
    uint32_t number;
    char long_text[4096];

    (void)state;
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    assert_int_equal(gtopo_texts_init(&texts), 0);
    assert_int_equal(gtopo_texts_add(&texts, long_text, &number), 0);
    for (int i = 1; i < 100; i++) {
        assert_int_equal(gtopo_texts_add(&texts, gtopo_texts_get(&texts, number) + 1, &number), 0);
        assert_string_equal(gtopo_texts_get(&texts, number), long_text + i);
    }
    gtopo_texts_clear(&texts);
}

static void an_array_that_cannot_grow_stays(void **state)
{
    size_t capacity = 0;
    uint64_t *items = NULL;

    (void)state;
    assert_int_equal(gtopo_grow((void **)&items, &capacity, 3, sizeof *items), 0);
    assert_true(capacity >= 3);
    items[2] = 42;
    assert_int_equal(gtopo_grow((void **)&items, &capacity, SIZE_MAX / 2, sizeof *items), GTOPO_ENOMEM);
    assert_int_equal(gtopo_grow((void **)&items, &capacity, SIZE_MAX, 1), GTOPO_ENOMEM);
    assert_int_equal(items[2], 42);
    free(items);
}

static void clean_text_is_utf8_without_control_characters(void **state)
{
    static const char *const clean[] = {"",
                                        "node1",
                                        "é",
                                        "→",
                                        "𝄞",
                                        "\xf4\x8f\xbf\xbf",
                                        "\xed\x9f\xbf",
                                        "\xee\x80\x80",
                                        "\xe0\xa0\x80",
                                        "\xf0\x90\x80\x80",
                                        "\xc2\xa0"};

    (void)state;
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        assert_true(gtopo_text_is_clean(clean[i]));
}

static void what_is_not_utf8_is_refused(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc3",
        "\xc3(",
        "\xe2\x86",
        "\xe2(\x92",
        "\xe0\x9f\xbf", /* overlong */
        "\xed\xa0\x80", /* surrogate */
        "\xf0\x9d\x84",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "a\xfe",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(gtopo_text_is_clean(bad[i]));
}

static void control_characters_are_refused(void **state)
{
    char text[3] = {0};

    (void)state;
    for (int c = 1; c < 0x20; c++) {
        text[0] = (char)c;
        assert_false(gtopo_text_is_clean(text));
    }
    assert_false(gtopo_text_is_clean("\x7f"));
    text[0] = '\xc2'; /* U+0080 … U+009F; U+009B begins what ESC [ begins */
    for (int c = 0x80; c < 0xa0; c++) {
        text[1] = (char)c;
        assert_false(gtopo_text_is_clean(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_have_equal_numbers),
        cmocka_unit_test(the_empty_text_is_number_zero),
        cmocka_unit_test(many_texts_are_found_again),
        cmocka_unit_test(a_part_of_a_stored_text_can_be_stored),
        cmocka_unit_test(an_array_that_cannot_grow_stays),
        cmocka_unit_test(clean_text_is_utf8_without_control_characters),
        cmocka_unit_test(what_is_not_utf8_is_refused),
        cmocka_unit_test(control_characters_are_refused),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
