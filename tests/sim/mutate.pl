#!/usr/bin/perl
# mutate -- breaks the source at the marks of one mutant, in the tree that it is run in.
#
#     MARKS=FILE mutate.pl NAME EDIT ...          what an EDIT is: tests/sim/mutants.sh
#
# MARKS lists every mark of the tree, as grep -rn shows it. Edit n belongs to mark n and changes nothing but the
# statement behind it. Prints each file that it changes; the file as it was stays beside it as FILE.sound. Exit 1,
# and nothing written, if a mark is missing or there twice, or if an edit finds nothing to change; CHECK=1 never
# writes. Layout does not count: an edit finds its text however the lines are broken.
use strict;
use warnings;

my ($name, @args) = @ARGV;
my $gap = qr{(?:\s|//[^\n]*\n)*};

sub fail { print "$name: @_\n"; exit 1; }

# The statement, function or block behind a place: from its first character to the one after its last. An if ends
# with its last else; a brace opens a block if a closing parenthesis or an else stands before it, else a value.
sub statement {
    my ($text, $at) = @_;
    my @open;
    pos($text) = $at;
    $text =~ /\G$gap/gc;
    my $begin = pos $text;
    while ($text =~ /\G$gap("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\w+|.)/gcs) {
        my $token = $1;
        if ($token =~ /^[(\[{]$/) {
            my $before = substr $text, 0, pos($text) - 1;
            push @open, $token eq '{' && $before =~ /(?:\)|\belse)\s+$/ ? 'block' : $token;
        } elsif ($token =~ /^[)\]}]$/) {
            return ($begin, pos($text) - 1) unless @open;
            return ($begin, pos $text) if pop @open eq 'block' && !@open && $text !~ /\G$gap\belse\b/;
            pos($text) = pos($text);
        } elsif ($token eq ';' && !@open && $text !~ /\G$gap\belse\b/) {
            return ($begin, pos $text);
        }
    }
    fail('the file ends in the statement behind the mark');
}

# What finds a piece of source in any layout.
sub pattern {
    my @tokens = $_[0] =~ /\w+|[^\w\s]/g;
    my $pattern = '';
    for my $i (0 .. $#tokens) {
        $pattern .= $i == 0 ? '' : "$tokens[$i - 1]$tokens[$i]" =~ /^\w+$/ ? '\s+' : $gap;
        $pattern .= quotemeta $tokens[$i];
    }
    $pattern = "\\b$pattern" if $tokens[0] =~ /^\w/;
    $pattern .= '\b' if $tokens[-1] =~ /^\w/;
    return qr/$pattern/;
}

my %files;
open my $marks, '<', $ENV{MARKS} or die "$ENV{MARKS}: $!";
while (<$marks>) { push @{ $files{$3} }, $1 if m{^(.+?):(\d+):\s*// mutant: (.*?)\s*$}; }

my (%text, %sound);
my $number = 0;
while (@args) {
    my $mark = ++$number == 1 ? $name : "$name ($number)";
    my $count = @{ $files{$mark} // [] };
    fail($count ? "$count marks" : 'no mark', "\"// mutant: $mark\"") if $count != 1;
    my $file = $files{$mark}[0];
    unless (exists $text{$file}) {
        open my $in, '<', $file or die "$file: $!";
        local $/;
        $text{$file} = $sound{$file} = <$in>;
    }
    $text{$file} =~ m{^\s*// mutant: \Q$mark\E\s*\n}mg or fail("the mark is gone from $file");
    my ($begin, $end) = statement($text{$file}, pos $text{$file});
    my $was = substr $text{$file}, $begin, $end - $begin;
    my $edit = shift @args;
    my $is;
    if ($edit eq 'drop') { $is = ''; }
    elsif ($edit eq 'instead') { $is = shift @args; }
    elsif ($edit eq 'before') { $is = shift(@args) . "\n$was"; }
    elsif ($edit eq 'after') { $is = "$was\n" . shift @args; }
    elsif ($edit eq 'swap') {
        my ($from, $to) = statement($text{$file}, $end);
        $is = substr($text{$file}, $from, $to - $from) . substr($text{$file}, $end, $from - $end) . $was;
        $end = $to;
    } else {
        my ($pattern, $into) = (pattern($edit), shift @args);
        my $found = () = $was =~ /$pattern/g;
        fail("\"$edit\" is", $found ? "$found times" : 'not', "in the statement behind $file: \"$mark\"") if $found != 1;
        ($is = $was) =~ s/$pattern/$into/;
    }
    fail("the edit of $file changes nothing") if $is eq $was;
    substr $text{$file}, $begin, $end - $begin, $is;
}
fail('more marks than edits') if $files{"$name (" . ($number + 1) . ')'};

for my $file (sort keys %text) {
    print "$file\n";
    next if $ENV{CHECK};
    rename $file, "$file.sound" or die "$file: $!";
    open my $out, '>', $file or die "$file: $!";
    print $out $text{$file};
}
